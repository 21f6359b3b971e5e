"""Reads a long capture through a pipe and watches the memory of the reader, which must stay flat.

    tools/capture_soak.py target/release/capture --packets 200000000
    tools/capture_soak.py target/release/capture --packets 97000000 --snap 1514     # 100 GB

The capture is made while it is read: short connections that come and go, 5000 at once, with losses in all of them.
What is measured each second goes to ``--out`` as CSV: octets read so far and resident kB.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

#: The first quarter of the capture fills what is bounded. After it the memory may grow by this share and no more.
GROWTH = 0.05
#: Seconds between two looks.
STEP = 1.0


def look(process: int) -> tuple[int, int]:
    """Octets that a process has read so far, and its resident kB; zeros once it has ended."""
    folder = Path("/proc") / str(process)
    try:
        octets = (folder / "io").read_text().split("rchar: ")[1].split()[0]
        status = (folder / "status").read_text()
    except (OSError, IndexError):
        return 0, 0
    return int(octets), int(status.split("VmRSS:")[1].split()[0]) if "VmRSS:" in status else 0


def watch(program: str, arguments: argparse.Namespace) -> tuple[list[tuple[int, int]], str]:
    """What was seen each second, and what the reader said in the end."""
    made = ["write", str(arguments.packets), "5000", "--life", "300", "--loss", "0.01", "--snap", str(arguments.snap)]
    seen = []
    with (
        subprocess.Popen([program, *made], stdout=subprocess.PIPE) as writer,
        subprocess.Popen(
            [program, "read", "-", "causes", "--rows", "4096", "--peak"],
            stdin=writer.stdout,
            stdout=subprocess.PIPE,
            text=True,
        ) as reader,
    ):
        if writer.stdout:
            writer.stdout.close()
        while reader.poll() is None:
            seen.append(look(reader.pid))
            time.sleep(STEP)
        said = reader.stdout.read().strip() if reader.stdout else ""
    if writer.returncode or reader.returncode:
        sys.exit(f"the writer ended with {writer.returncode}, the reader with {reader.returncode}")
    return [sight for sight in seen if sight[1]], said


def main() -> None:
    """Makes the capture, watches its reader, and judges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the program `capture` of benches/")
    parser.add_argument("--packets", type=int, default=200_000_000)
    parser.add_argument("--snap", type=int, default=96, help="octets that are captured of a packet; 1514 are all")
    parser.add_argument("--out", type=Path, help="where the measurements go")
    arguments = parser.parse_args()
    began = time.monotonic()
    seen, said = watch(arguments.program, arguments)
    took = time.monotonic() - began
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("octets,resident_kb\n" + "".join(f"{octets},{kb}\n" for octets, kb in seen))
    octets = seen[-1][0] if seen else 0
    early = [kb for at, kb in seen if at <= octets / 4]
    late = [kb for at, kb in seen if at > octets / 4]
    if len(early) < 5 or len(late) < 5:
        sys.exit("the capture is too short to tell: more --packets")
    packets, _, cpu, _, peak = said.split()
    print(
        f"{int(packets):,} packets, {octets / 1e9:.1f} GB, {took:.0f} s; {float(cpu):.0f} s of the reader's processor"
    )
    print(f"resident kB: {max(early):,} at most in the first quarter, {max(late):,} after it; peak {int(peak):,}")
    for part in range(1, 9):
        at, kb = min(seen, key=lambda sight: abs(sight[0] - octets * part / 8))
        print(f"  {at / 1e9:6.1f} GB  {kb / 1e3:7.1f} MB")
    if max(late) > max(early) * (1 + GROWTH):
        sys.exit("memory grew with the length of the capture")


if __name__ == "__main__":
    main()
