"""A folder is packed as the hub takes it, and one that cannot be a source says why."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from tests.sdk.scripted_hub import Reply, ScriptedHub
from trainhub_sdk import Client
from trainhub_sdk.errors import FolderRefused, FolderTooLarge
from trainhub_sdk.source_folder import SourceLimits, list_files, pack


def make(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_the_same_content_gives_the_same_zip(tmp_path: Path) -> None:
    files = {
        "train.py": b"1",
        "pkg/b.py": b"2",
        "__pycache__/x.pyc": b"",
        ".trainhubignore": b"*.ckpt\n",
        "m.ckpt": b"3",
    }
    one, two = make(tmp_path / "1", files), make(tmp_path / "2", dict(reversed(files.items())))
    (one / "train.py").chmod(0o755)
    (two / "train.py").chmod(0o700)
    os.utime(one / "train.py", (0, 0))
    with pack(one) as first, pack(two) as second:
        assert first.read() == second.read()
        first.seek(0)
        with zipfile.ZipFile(first) as archive:
            assert archive.namelist() == [".trainhubignore", "pkg/b.py", "train.py"]
            assert archive.getinfo("train.py").external_attr >> 16 == 0o755


def test_the_only_folder_is_a_part_of_the_paths(tmp_path: Path) -> None:
    with pack(make(tmp_path, {"pkg/a.py": b""})) as packed, zipfile.ZipFile(packed) as archive:
        assert archive.namelist() == ["pkg/a.py", ".trainhubignore"]


def test_too_many_files_name_where_most_are(tmp_path: Path) -> None:
    make(tmp_path, {**{f"data/{n}": b"" for n in range(5)}, "a.py": b"", "venv/x": b"", "venv/y": b""})
    with pytest.raises(FolderTooLarge) as caught:
        list_files(tmp_path, SourceLimits(files=4))
    assert "has 8 files, and 4 are allowed. Most are in data/ (5 files), venv/ (2 files), a.py" in str(
        caught.value
    )
    assert ".trainhubignore" in str(caught.value)


def test_a_huge_folder_is_not_walked_to_its_end(tmp_path: Path) -> None:
    with pytest.raises(FolderTooLarge, match="more than 5 files"):
        list_files(make(tmp_path, {str(number): b"" for number in range(20)}), SourceLimits(files=1))


def test_too_many_bytes_name_where_most_are(tmp_path: Path) -> None:
    make(tmp_path, {"runs/a": b"x" * 2_000_000, "big.bin": b"x" * 3_000_000, "a.py": b""})
    with pytest.raises(
        FolderTooLarge, match=r"has 5 MB, and 3 MB are allowed. Most is in big.bin \(3 MB\), runs/"
    ):
        list_files(tmp_path, SourceLimits(size_bytes=3_000_000))


@pytest.mark.parametrize(("allowed", "requests"), [(30_000, 2), (20_000, 1)])
def test_a_hub_that_takes_more_is_asked_for_its_limits(tmp_path: Path, allowed: int, requests: int) -> None:
    files = {f"data/{number}": b"" for number in range(20_001)}
    me = {"user": "ada", "max_source_files": allowed, "max_source_bytes": 2**29}
    hub = ScriptedHub(Reply(body=json.dumps(me).encode()), Reply(body=b'{"id": "abc"}'))
    with hub.serving() as url:
        client = Client(url, "token")
        if allowed > len(files):
            assert client.upload_folder(make(tmp_path, files)) == "abc"
        else:
            with pytest.raises(FolderTooLarge, match="20,000 are allowed"):
                client.upload_folder(make(tmp_path, files))
    assert [request.path for request in hub.requests] == ["/api/v1/me/", "/api/v1/snapshots/"][:requests]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere", "a link to nothing"),
        ("/etc/hostname", "leads out of the folder"),
        ("pkg", "a link to a folder"),
    ],
)
def test_links_that_cannot_be_sent(tmp_path: Path, target: str, message: str) -> None:
    make(tmp_path, {"pkg/a.py": b""})
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(FolderRefused, match=message):
        list_files(tmp_path)
    (tmp_path / ".trainhubignore").write_text("link\n")
    assert [file.path for file in list_files(tmp_path)] == [".trainhubignore", "pkg/a.py"]


def test_what_is_no_folder_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(FolderRefused, match="is not a folder"):
        list_files(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FolderRefused, match="pipe is not a regular file"):
        list_files(tmp_path)
