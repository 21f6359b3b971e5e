"""Makes the captures of this folder, what ``whyloss explain`` says of them, and the pictures of docs/explain-tour.md.

``make.py [NAME…]`` has Linux' TCP carry data over emulated links: needs root, editcap (of Wireshark) and zstd.
``make.py --said [NAME…]`` keeps the captures and writes texts and pictures again. Pictures need chromium.
Each has comments that tell what became of each packet, and is cut to 96 octets a packet.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from linux import Transfer, captured
from PIL import Image

from whyloss import captures

HERE = Path(__file__).parent
WHYLOSS = Path(sys.executable).parent / "whyloss"
TRANSFERS = {
    "congested": Transfer(4e6),
    "lossy-radio": Transfer(2.5e6),
    # Without CUBIC's early end of slow start, which would leave the queue short for many seconds.
    "bufferbloat": Transfer(1.2e6, control="reno", receive_buffer=100_000),
    "receiver-limited": Transfer(1.2e6, receive_buffer=20_000),
    "policer": Transfer(2.5e6),
}


PICTURES = HERE.parents[1] / "docs" / "figures" / "explain"
#: Nothing but the diagram of the worst connection is left of the page.
ALONE = """<style>header, main > :not(#flow-0), #flow-0 > :not(figure), details { display: none !important }
main, figure { margin: 0 !important; padding: 0 !important; border: 0 !important; max-width: none !important }
</style></head>"""
#: Of the window, in which the diagram takes three quarters of the height.
WIDTH, HEIGHT, SHARPER = 1100, 800, 1.5
#: Octets of a picture in which nothing was drawn yet, at the most.
BLANK = 15_000


def take(name: str) -> None:
    """Makes a capture anew."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder, f"{name}.pcapng")
        captured(HERE / f"{name}.toml", TRANSFERS[name], truth=Path(folder, "path.pcapng"))
        subprocess.run(["editcap", "-s", "96", Path(folder, "path-server.pcapng"), raw], check=True)
        subprocess.run(["zstd", "-19", "--quiet", "--force", raw, "-o", HERE / f"{raw.name}.zst"], check=True)


def say(name: str) -> None:
    """Writes what is said of a capture, and draws it."""
    kept = HERE / f"{name}.pcapng.zst"
    told = subprocess.run(
        [WHYLOSS, "explain", kept.name],
        cwd=HERE,
        env={**os.environ, "COLUMNS": "160"},
        capture_output=True,
        text=True,
        check=True,
    )
    (HERE / f"{name}.txt").write_text(told.stdout, encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder, "page.html"), Path(folder, "shot.png")
        captures.explain(kept).page(page)
        page.write_text(page.read_text(encoding="utf-8").replace("</head>", ALONE), encoding="utf-8")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/browser",
        ]
        size = [f"--window-size={WIDTH},{HEIGHT}", f"--force-device-scale-factor={SHARPER}"]
        # Unpacking runs outside of the browser's virtual time, which may be over first.
        for budget in (30_000, 240_000, 960_000):
            time = f"--virtual-time-budget={budget}"
            command = ["chromium", *options, *size, time, f"--screenshot={shot}", page.as_uri()]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            if shot.stat().st_size > BLANK:
                break
        whole = Image.open(shot).convert("RGB")
        drawn = whole.crop((0, 0, whole.width, round(HEIGHT * 0.75 * SHARPER)))
        drawn.save(PICTURES / f"{name}.webp", quality=85, method=6)


def main() -> None:
    """Makes those that are named, all if none are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--said", action="store_true", help="keep the captures")
    parser.add_argument("names", nargs="*", choices=[[], *TRANSFERS], metavar="NAME")
    chosen = parser.parse_args()
    for name in chosen.names or TRANSFERS:
        if not chosen.said:
            take(name)
        say(name)


if __name__ == "__main__":
    main()
