"""Files are whole or not there."""

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
