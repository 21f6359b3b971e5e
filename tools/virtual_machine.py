"""Runs a command on other kernels, in virtual machines whose clock counts instructions.

    tools/virtual_machine.py FOLDER --writable out -- COMMAND...
    tools/virtual_machine.py FOLDER --tests

FOLDER holds kernels as they come out of Debian's packages: ``boot/vmlinuz-VERSION``, ``usr/lib/modules/VERSION``
(``apt-get download linux-image-VERSION``, then ``dpkg-deb -x linux-image-*.deb FOLDER``). Each of them is started, one
after the other, and runs the command as root over this machine's files, of which it can change only the folders named
with ``--writable``. ``--tests`` runs the tests of the kernel part instead and ends with a table of them. The exit
status is that of the first command that failed.

By the machine's clock an instruction takes a nanosecond, and nothing else takes any time: one processor, always at the
same speed. So emulated links keep their time however busy this machine is, and time in which nothing is to be done
passes at once. Reading a file that is not in memory yet may seem to take minutes: what measures does it twice.

Needs qemu-system-x86_64, busybox (static) and virtme-ng, which `make .venv-vm/bin/vng` installs (or WHYLOSS_VNG names).
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parent.parent
VNG = ROOT / ".venv-vm" / "bin" / "vng"
#: What Debian's kernels have as modules, and tests and measurements need.
MODULES = "tun veth dummy tcp_bbr sch_ingress cls_bpf nf_tables nft_masq nft_nat ip6_tables iptable_nat xt_MASQUERADE"
#: Before the command: its network, its controls, the file system of BPF programs.
PREPARE = f"""
for module in {MODULES}; do modprobe -q $module; done
ip link set lo up
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
"""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a folder."""

    folder: Path
    version: str

    @property
    def image(self) -> Path:
        """What is started."""
        return self.folder / "boot" / f"vmlinuz-{self.version}"


def kernels(folder: Path) -> list[Kernel]:
    """Those of a folder that have modules, the oldest first."""

    def age(version: str) -> list[int]:
        return [int(number) for number in version.split("+")[0].split("-")[0].split(".")]

    versions = [path.name.removeprefix("vmlinuz-") for path in (folder / "boot").glob("vmlinuz-*")]
    whole = [version for version in versions if (folder / "usr/lib/modules" / version).is_dir()]
    if not whole:
        raise SystemExit(
            f"error: {folder}: no boot/vmlinuz-VERSION beside usr/lib/modules/VERSION; "
            f"`dpkg-deb -x linux-image-VERSION.deb {folder}` puts a kernel there"
        )
    return [Kernel(folder, version) for version in sorted(whole, key=age)]


def need(program: str | Path, package: str) -> str:
    """Where a program is."""
    found = shutil.which(program)
    if found is None:
        raise SystemExit(f"error: {program} is missing: {package}")
    return found


@contextmanager
def _laid_out(kernel: Kernel) -> Iterator[Path]:
    """The kernel's image in a folder laid out as a root, where its modules are looked for."""
    with tempfile.TemporaryDirectory(prefix="whyloss-vm-") as name:
        root = Path(name)
        (root / "boot").symlink_to((kernel.folder / "boot").resolve())
        (root / "lib").symlink_to((kernel.folder / "usr" / "lib").resolve())
        yield root / "boot" / kernel.image.name


def run(kernel: Kernel, command: str, writable: Sequence[Path], memory: str) -> int:
    """Runs a line of shell in a machine with this kernel; what it prints appears here. Returns its exit status."""
    vng = need(os.environ.get("WHYLOSS_VNG") or (VNG if VNG.exists() else "vng"), "run `make .venv-vm/bin/vng`")
    need("qemu-system-x86_64", "Debian has it in qemu-system-x86")
    need("busybox", "Debian has it in busybox-static")
    need("depmod", "Debian has it in kmod")
    with tempfile.TemporaryDirectory(prefix="whyloss-vm-") as name, _laid_out(kernel) as image:
        shared = Path(name)
        printed, status = shared / "printed", shared / "status"
        printed.touch()
        script = shared / "script"
        script.write_text(
            f"{PREPARE}\ncd {shlex.quote(str(Path.cwd()))}\n"
            f"({command}) >{printed} 2>&1 </dev/null\necho $? >{status}\nsync\n",
            encoding="utf-8",
        )
        folders = [shared, *(path.resolve() for path in writable)]
        options = ["--disable-kvm", "--disable-microvm", "--force-9p", "--cpus", "1", "--memory", memory]
        arguments = [vng, "--run", str(image), *options, *(f"--rwdir={folder}" for folder in folders)]
        arguments += ["--qemu-opts=-icount shift=0,sleep=off", "--exec", f"sh {script}"]
        # virtme-ng looks for the programs beside it on the path, and its console wants no terminal.
        path = f"{Path(vng).parent}{os.pathsep}{os.environ['PATH']}"
        machine = subprocess.Popen(
            arguments, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        console: list[str] = []
        reader = threading.Thread(target=lambda: console.extend(machine.stdout or ()), daemon=True)
        reader.start()
        try:
            _follow(printed, machine)
        finally:
            machine.terminate() if machine.poll() is None else None
            machine.wait()
        reader.join(timeout=5)
        if not status.exists():
            tail = "".join(console[-30:])
            raise SystemExit(f"error: {kernel.version}: the machine ended before the command did\n{tail}")
        return int(status.read_text(encoding="utf-8"))


def _follow(file: Path, process: subprocess.Popen[str]) -> None:
    """Copies what is added to a file, until the process has ended."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        while True:
            try:
                process.wait(timeout=0.5)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
            sys.stdout.write(lines.read())
            sys.stdout.flush()
            if ended:
                return


def programs() -> list[Path]:
    """The test programs of the kernel part, built."""
    part = subprocess.run(
        [ROOT / "tools/kernel-part", "bpf"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()
    if not part:
        raise SystemExit("error: the kernel part cannot be built here")
    line = ["cargo", "test", "--package", "whyloss-kernel", "--locked", *part, "--no-run", "--message-format=json"]
    built = subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = [json.loads(message) for message in built.splitlines() if message.startswith("{")]
    return [
        Path(message["executable"]) for message in messages if message.get("executable") and message["profile"]["test"]
    ]


def tests(kernel: Kernel, chosen: Sequence[Path], memory: str) -> dict[str, int]:
    """The exit status of each test program on a kernel."""
    crate = ROOT / "crates" / "kernel"
    # What a compiler makes does not depend on the kernel, and takes long there.
    lines = [
        f"cd {shlex.quote(str(crate))}; export BPF_CLANG=none; "
        f"{shlex.quote(str(program))} --test-threads=1; echo program {program.stem} $?"
        for program in chosen
    ]
    with tempfile.TemporaryDirectory(prefix="whyloss-vm-") as name:
        seen = Path(name) / "seen"
        run(kernel, f"({'; '.join(lines)}) | tee {seen}", [Path(name)], memory)
        words = [line.split() for line in seen.read_text(encoding="utf-8").splitlines() if line.startswith("program ")]
    return {name.rsplit("-", 1)[0]: int(status) for _, name, status in words}


def table(found: dict[str, dict[str, int]]) -> str:
    """Test programs by kernels, in Markdown."""
    names = list(dict.fromkeys(name for statuses in found.values() for name in statuses))
    rows = [f"| | {' | '.join(found)} |", f"| --- |{' --- |' * len(found)}"]
    for name in names:
        cells = ["passed" if status.get(name) == 0 else "failed" for status in found.values()]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        usage="%(prog)s FOLDER [--kernel VERSION] [--writable DIR] [--memory SIZE] (--tests | -- COMMAND...)",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="kernels")
    parser.add_argument("--kernel", action="append", default=[], help="only versions that begin so")
    parser.add_argument(
        "--writable", action="append", type=Path, default=[], help="a folder that the command may change"
    )
    parser.add_argument("--memory", default="3G", help="of a machine")
    parser.add_argument("--tests", action="store_true", help="run the tests of the kernel part")
    parser.add_argument("--only", action="append", default=[], help="of these, programs with this name")
    own = sys.argv[1:]
    command: list[str] = []
    if "--" in own:
        own, command = own[: own.index("--")], own[own.index("--") + 1 :]
    chosen = parser.parse_args(own)
    if bool(command) == chosen.tests:
        parser.error("name a command behind --, or --tests")
    wanted = [
        kernel
        for kernel in kernels(chosen.folder)
        if not chosen.kernel or any(kernel.version.startswith(version) for version in chosen.kernel)
    ]
    if not wanted:
        have = ", ".join(kernel.version for kernel in kernels(chosen.folder))
        parser.error(f"--kernel {' '.join(chosen.kernel)}: no such kernel in {chosen.folder}; there are {have}")
    if not chosen.tests:
        statuses = [run(kernel, shlex.join(command), chosen.writable, chosen.memory) for kernel in wanted]
        return next((status for status in statuses if status), 0)
    built = [program for program in programs() if not chosen.only or program.stem.rsplit("-", 1)[0] in chosen.only]
    found = {kernel.version: tests(kernel, built, chosen.memory) for kernel in wanted}
    print(table(found))
    return int(any(status for statuses in found.values() for status in statuses.values()))


if __name__ == "__main__":
    sys.exit(main())
