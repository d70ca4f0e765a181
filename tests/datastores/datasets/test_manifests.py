"""Lists of files: their order, their pages, and what differs between two."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest

from datastores.datasets import file_list
from datastores.models import DatasetVersion, Manifest
from trainhub_launch.data.file_order import in_order
from trainhub_launch.data.manifests import BLOCK_FILES, ListedFile, ManifestWriter, read_manifest
from trainhub_launch.data.store_listing import ListingError, without_folders
from workspaces.stored_files.blob_writer import BlobWriter


def listed(path: str, size: int = 1, etag: str = "e", modified_at: float = 1.5) -> ListedFile:
    return ListedFile(path, size, etag, modified_at)


def stored(files: list[ListedFile], number: int = 1) -> DatasetVersion:
    """A version with this list, in no database."""
    buffer = io.BytesIO()
    writer = ManifestWriter(buffer)
    for file in files:
        writer.write(file)
    writer.flush()
    with BlobWriter() as blob:
        blob.write(buffer.getvalue())
        sha256 = blob.finish()
    version = DatasetVersion(number=number, files=writer.files, bytes=writer.bytes)
    version.manifest = Manifest(sha256=sha256, starts=file_list.pack_starts(writer.starts))
    return version


class TestOrder:
    @pytest.mark.parametrize("run_files", [3, 1000])
    def test_puts_the_files_of_a_folder_together(self, run_files: int) -> None:
        paths = ["a", "a/b", "a/c/d", "a-b", "a.txt", "a0", "b/a", "ä", "é/x"]
        shuffled = random.Random(7).sample(paths, len(paths))  # noqa: S311 - only another order
        ordered = [file.path for file in in_order(map(listed, shuffled), run_files)]
        assert ordered == ["a", "a/b", "a/c/d", "a-b", "a.txt", "a0", "b/a", "ä", "é/x"]

    def test_of_many_files_keeps_each_once(self) -> None:
        paths = [f"{number:05d}/{number}" for number in range(5000)]
        shuffled = random.Random(7).sample(paths, len(paths))  # noqa: S311 - only another order
        assert [file.path for file in in_order(map(listed, shuffled), 700)] == paths


class TestFolders:
    def test_that_are_empty_objects_are_left_out(self) -> None:
        files = [listed("a", 0), listed("a/b", 0), listed("a/b/c"), listed("d", 0)]
        assert [file.path for file in without_folders(files, "The bucket x")] == ["a/b/c", "d"]

    def test_that_are_files_too_are_refused(self) -> None:
        with pytest.raises(ListingError, match="has both a file a and files below a/"):
            list(without_folders([listed("a", 5), listed("a/b")], "The bucket x"))


def test_a_list_comes_back_as_it_was() -> None:
    files = [listed("a b/ü\n\"'.bin", 2**40, '"e-1"', 1_790_000_000.25), listed("b", 0, "", 0.0)]
    buffer = io.BytesIO()
    writer = ManifestWriter(buffer)
    for file in files:
        writer.write(file)
    writer.flush()
    assert (writer.files, writer.bytes, writer.starts) == (2, 2**40, [0])
    buffer.seek(0)
    assert list(read_manifest(buffer)) == files


class TestPages:
    @pytest.mark.parametrize(
        ("start", "count", "numbers"),
        [
            (0, 3, [0, 1, 2]),
            (BLOCK_FILES - 1, 2, [BLOCK_FILES - 1, BLOCK_FILES]),
            (2 * BLOCK_FILES + 400, 5, [2 * BLOCK_FILES + 400 + item for item in range(5)]),
            (2 * BLOCK_FILES + 499, 5, [2 * BLOCK_FILES + 499]),
            (2 * BLOCK_FILES + 500, 5, []),
            (10**9, 5, []),
        ],
    )
    def test_begin_anywhere(self, start: int, count: int, numbers: list[int]) -> None:
        version = stored([listed(f"{number:06d}", number) for number in range(2 * BLOCK_FILES + 500)])
        assert [file.size for file in file_list.read_page(version, start, count)] == numbers


class TestDifferences:
    def changes(self, old: list[ListedFile], new: list[ListedFile]) -> dict[str, Any]:
        result = file_list.compare(stored(old), stored(new, 2).manifest)
        back = DatasetVersion(differences=result.to_json())
        assert file_list.differences_of(back) == result
        return {kind: [file.path for file in getattr(result, kind).first] for kind in file_list.Change}

    def test_are_named_by_kind(self) -> None:
        old = [listed("a/1"), listed("a/2"), listed("a-b"), listed("c")]
        new = [listed("a/2", etag="other"), listed("a/3"), listed("a-b"), listed("d"), listed("e")]
        assert self.changes(old, new) == {
            "added": ["a/3", "d", "e"],
            "removed": ["a/1", "c"],
            "changed": ["a/2"],
        }

    def test_of_the_same_files_are_none(self) -> None:
        files = [listed("a"), listed("b")]
        assert file_list.compare(stored(files), stored(files, 2).manifest).is_same
        later = [file._replace(modified_at=9.0) for file in files]
        assert file_list.compare(stored(files), stored(later, 2).manifest).is_same, "the store says so"

    def test_without_etags_the_time_decides(self) -> None:
        old, new = [listed("a", etag="")], [listed("a", etag="", modified_at=2.5)]
        assert self.changes(old, new)["changed"] == ["a"]

    def test_of_many_files_are_counted_and_the_first_named(self) -> None:
        result = file_list.compare(
            stored([listed("0")]), stored([listed(f"{number:05d}") for number in range(3000)], 2).manifest
        )
        assert (result.added.files, len(result.added.first)) == (3000, file_list.MAX_NAMED)
