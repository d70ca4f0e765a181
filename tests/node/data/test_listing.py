"""Which objects of a store become files, and which names are refused."""

from __future__ import annotations

import pytest
from obstore import put
from obstore.store import MemoryStore

from trainhub_launch.data.stores import S3, Store
from trainhub_node.data.errors import DataError
from trainhub_node.data.listing import list_files
from trainhub_node.data.remote_file import RemoteFile

BUCKET = Store(S3, settings={"bucket": "birds"})


def listed(*keys: str, path: str = "", size: int = 3) -> list[RemoteFile]:
    client = MemoryStore()
    for key in keys:
        put(client, key, b"" if key.endswith("/") else b"x" * size)
    return list_files(client, BUCKET, path, "1", "")


def test_paths_are_below_what_was_named() -> None:
    files = listed("2024/a/one.bin", "2024/two.bin", "2025/three.bin", path="2024")
    assert [(file.key, file.path) for file in files] == [
        ("2024/a/one.bin", "a/one.bin"),
        ("2024/two.bin", "two.bin"),
    ]


def test_one_object_is_one_file() -> None:
    (file,) = listed("2024/one.bin", "2024/one.bin.txt", path="2024/one.bin")
    assert (file.key, file.path) == ("2024/one.bin", "one.bin")


def test_a_folder_is_no_prefix_of_a_name() -> None:
    assert [file.key for file in listed("birds/a", "birds2/b", path="birds")] == ["birds/a"]


def test_empty_objects_that_stand_for_folders_are_none() -> None:
    assert [file.path for file in listed("a/", "a/one.bin")] == ["a/one.bin"]


def test_the_version_of_an_object_makes_its_identity() -> None:
    (first,), (second,) = listed("a", size=3), listed("a", size=4)
    assert first.identity != second.identity


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (("a", "a/b"), "has both a file a and files below a/"),
        ((), "has nothing at its top"),
        ((f"{'n' * 256}/b",), "whose name cannot be a file's"),
        (("/".join(["part"] * 700),), "whose name cannot be a file's"),
    ],
)
def test_what_no_disk_can_have_is_refused(keys: tuple[str, ...], words: str) -> None:
    with pytest.raises(DataError) as raised:
        listed(*keys)
    assert words in str(raised.value)
