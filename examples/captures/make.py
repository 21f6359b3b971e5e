"""Makes the captures of this folder, and what ``whyloss explain`` says of them.

That of the policer needs root and tcpdump.
The others come from the simulator, cut to 96 octets a packet: their comments tell what became of each packet.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
WHYLOSS = Path(sys.executable).parent / "whyloss"


def main() -> None:
    """Makes those that are named, all if none are."""
    names = sys.argv[1:] or ["policer", *sorted(path.stem for path in HERE.glob("*.toml"))]
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            if name == "policer":
                raw = Path(folder, "policer.pcap")
                subprocess.run([sys.executable, HERE / "policer.py", raw], check=True)
            else:
                subprocess.run([WHYLOSS, "run", HERE / f"{name}.toml", "--out", folder], check=True)
                (raw,) = Path(folder).glob("*.pcapng")
            kept = HERE / f"{name}{raw.suffix}.zst"
            subprocess.run(["zstd", "-19", "--quiet", "--force", raw, "-o", kept], check=True)
        said = subprocess.run([WHYLOSS, "explain", kept.name], cwd=HERE, capture_output=True, text=True, check=True)
        (HERE / f"{name}.txt").write_text(said.stdout, encoding="utf-8")


if __name__ == "__main__":
    main()
