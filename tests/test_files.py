"""Files are whole or not there."""

import os
import stat
import threading
from pathlib import Path

import pytest

from whyloss import files


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert files.write(path, "old ×") == path
    seen = []

    def half() -> None:
        with files.aside(path) as part:
            seen.append(part)
            part.write_text("half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        half()
    assert seen[0].parent == tmp_path
    assert seen[0].suffix == path.suffix
    assert path.read_bytes() == "old ×".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_whole_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with files.aside(path) as part, part.open("w") as file:
        file.write("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.write(tmp_path / "nowhere" / "page.html", "x")


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    target, link, onwards = tmp_path / "below" / "target.html", tmp_path / "link.html", tmp_path / "onwards"
    link.symlink_to("onwards")
    onwards.symlink_to("below/target.html")
    for text in ("new", "newer"):
        files.write(link, text)
        assert target.read_text() == text
        assert link.is_symlink()
        assert onwards.is_symlink()
    assert list((tmp_path / "below").iterdir()) == [target]


def test_a_pipe_gets_what_is_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    files.write(pipe, "all of it")
    reader.join(10)
    assert read == ["all of it"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize(("minor", "full"), [(3, False), (7, True)])
def test_a_device_stays_a_device(tmp_path: Path, minor: int, full: bool) -> None:
    device = tmp_path / "device.html"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        device.write_text("")
    except PermissionError as reason:
        pytest.skip(f"needs a device: {reason}")
    if full:
        with pytest.raises(OSError, match="No space left") as caught:
            files.write(device, "x")
        assert caught.value.filename == str(device)
    else:
        files.write(device, "x")
    assert device.is_char_device()
    assert list(tmp_path.iterdir()) == [device]
