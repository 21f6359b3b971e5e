"""What `make wheel` builds carries everything: it works far from this folder."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from conftest import ROOT


def test_a_wheel_works_on_its_own(tmp_path: Path) -> None:
    # As the Makefile has it, but nothing is installed for a test's sake.
    choice = {"WHYLOSS_KERNEL": "as-is", **os.environ}
    told = subprocess.run(
        [ROOT / "tools" / "kernel-part", "kernel"], env=choice, capture_output=True, text=True, check=True
    )
    features = told.stdout.split()
    maturin = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--quiet", "--out", str(tmp_path)]
    subprocess.run(maturin + features, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert "cp311-abi3" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert {"whyloss/py.typed", "whyloss/_native.abi3.so", "whyloss/_papers/garcia2004/paper.toml"} <= set(names)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "site", wheel], check=True
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "import whyloss, whyloss.papers\n"
        "print(whyloss.__file__, whyloss.papers.list_papers())\n"
        "print('kernel part' if whyloss._native.kernel_counters() else 'no kernel part')\n"
        "print(open('/proc/self/maps').read() if sys.platform == 'linux' else '')"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    said = told.stdout
    assert str(tmp_path) in said
    assert "garcia2004" in said
    assert ("no kernel part" in said) == (not features)
    assert "libelf" not in said
