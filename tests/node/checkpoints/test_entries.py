"""Which entries of a folder of checkpoints are complete, and by which sign."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainhub_launch.states import CheckpointSign
from trainhub_node.checkpoints import entries
from trainhub_node.checkpoints.entries import Entry, list_entries, read_entry
from trainhub_node.checkpoints.renames import RenameWatch


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    return folder


@pytest.fixture
def watch(place: Path) -> Iterator[RenameWatch]:
    watch = RenameWatch(str(place.parent), place.name)
    watch.look()
    yield watch
    watch.close()


def listed(place: Path, watch: RenameWatch | None = None) -> dict[str, Entry]:
    if watch is not None:
        watch.look()
    renames = watch.renames if watch is not None else {}
    return {entry.name: entry for entry in list_entries(str(place.parent), place.name, renames)}


def write(path: Path, text: str = "weights") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


class TestSigns:
    def test_a_file_under_its_own_name_has_none(self, place: Path, watch: RenameWatch) -> None:
        write(place / "last.pt")
        assert listed(place, watch)["last.pt"].sign is CheckpointSign.NONE

    def test_a_renamed_file_is_complete(self, place: Path, watch: RenameWatch) -> None:
        write(place / ".new").rename(place / "last.pt")
        assert listed(place, watch)["last.pt"].sign is CheckpointSign.RENAMED

    def test_a_file_renamed_from_elsewhere_is_complete(self, place: Path, watch: RenameWatch) -> None:
        write(place.parent / "new").rename(place / "last.pt")
        assert listed(place, watch)["last.pt"].sign is CheckpointSign.RENAMED

    def test_not_one_that_is_written_to_afterwards(self, place: Path, watch: RenameWatch) -> None:
        write(place / ".new").rename(place / "last.pt")
        write(place / "last.pt", "more")
        assert listed(place, watch)["last.pt"].sign is CheckpointSign.NONE

    def test_nor_another_file_of_that_name(self, place: Path, watch: RenameWatch) -> None:
        write(place / ".new").rename(place / "last.pt")
        watch.look()
        (place / "last.pt").unlink()
        write(place / "last.pt")
        os.utime(place / "last.pt", (0, 0))
        assert listed(place, watch)["last.pt"].sign is CheckpointSign.NONE

    def test_each_rename_counts_anew(self, place: Path, watch: RenameWatch) -> None:
        versions = set()
        for epoch in range(3):
            write(place / ".new", f"epoch {epoch}").rename(place / "last.pt")
            entry = listed(place, watch)["last.pt"]
            assert entry.sign is CheckpointSign.RENAMED
            versions.add(entry.version)
        assert len(versions) == 3

    def test_a_folder_that_was_filled_before_its_rename(self, place: Path, watch: RenameWatch) -> None:
        write(place / "tmp-checkpoint-5" / "model" / "weights")
        (place / "tmp-checkpoint-5").rename(place / "checkpoint-5")
        entry = listed(place, watch)["checkpoint-5"]
        assert (entry.sign, entry.files) == (CheckpointSign.RENAMED, ("checkpoint-5/model/weights",))

    def test_a_folder_of_torch_with_its_metadata(self, place: Path) -> None:
        write(place / "step-1" / "__0_0.distcp")
        write(place / "step-1" / ".metadata")
        write(place / "step-2" / "__0_0.distcp")
        write(place / "step-2" / "deeper" / ".metadata")
        assert {name: entry.sign for name, entry in listed(place).items()} == {
            "step-1": CheckpointSign.METADATA,
            "step-2": CheckpointSign.NONE,
        }

    def test_a_marker(self, place: Path) -> None:
        write(place / "mine" / "weights")
        write(place / "mine" / ".complete", "")
        assert listed(place)["mine"].sign is CheckpointSign.MARKER

    def test_what_deepspeed_calls_the_latest(self, place: Path) -> None:
        write(place / "global_step10" / "mp_rank_00_model_states.pt")
        write(place / "global_step20" / "mp_rank_00_model_states.pt")
        write(place / "latest", "global_step10\n")
        there = listed(place)
        assert set(there) == {"global_step10", "global_step20"}
        assert there["global_step10"].sign is CheckpointSign.LATEST
        assert there["global_step10"].files == ("global_step10/mp_rank_00_model_states.pt",)
        assert there["global_step20"].sign is CheckpointSign.NONE
        # The next one is no change of this one, which is still on its way to the hub.
        write(place / "latest", "global_step20")
        assert listed(place)["global_step10"].version == there["global_step10"].version

    def test_deepspeed_in_a_folder_of_its_own(self, place: Path) -> None:
        write(place / "epoch-3" / "global_step10" / "mp_rank_00_model_states.pt")
        write(place / "epoch-3" / "latest", "global_step10")
        write(place / "epoch-4" / "latest", "global_step99")
        there = listed(place)
        assert (there["epoch-3"].sign, there["epoch-4"].sign) == (CheckpointSign.LATEST, CheckpointSign.NONE)


class TestListing:
    @pytest.mark.parametrize("name", [".hidden", "tmpabc", "a.tmp", "b.part", "c.incomplete"])
    def test_what_is_being_written_is_left_out(self, place: Path, name: str) -> None:
        write(place / name)
        assert listed(place) == {}

    def test_a_version_changes_with_any_file(self, place: Path) -> None:
        write(place / "a" / "one")
        first = listed(place)["a"]
        write(place / "a" / "two")
        second = listed(place)["a"]
        write(place / "a" / "two", "longer weights")
        third = listed(place)["a"]
        assert len({first.version, second.version, third.version}) == 3
        assert third.size == len("weights") + len("longer weights")

    def test_the_oldest_comes_first(self, place: Path) -> None:
        for name, at in (("new", 200), ("old", 100)):
            os.utime(write(place / name), (at, at))
        assert list(listed(place)) == ["old", "new"]

    def test_links_and_empty_folders_are_no_checkpoints(self, place: Path, tmp_path: Path) -> None:
        (place / "link").symlink_to("/etc/passwd")
        (place / "folder").mkdir()
        (place / "loop").symlink_to(place)
        write(place / "real" / "weights")
        (place / "real" / "link").symlink_to("/etc")
        assert {name: entry.files for name, entry in listed(place).items()} == {"real": ("real/weights",)}

    def test_a_link_in_the_place_of_the_folder_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "checkpoints").symlink_to("/etc")
        assert list_entries(str(tmp_path), "checkpoints", {}) == []

    def test_too_many_files_are_said_to_be_wrong(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(entries, "MAX_CHECKPOINT_FILES", 3)
        for number in range(5):
            write(place / "many" / str(number))
        assert "more than 3 files" in listed(place)["many"].wrong

    def test_names_that_are_no_plain_text_are_said_to_be_wrong(self, place: Path) -> None:
        write(place / "a\nb")
        assert "plain text" in listed(place)["a\nb"].wrong

    def test_no_folder_is_no_fault(self, tmp_path: Path) -> None:
        assert list_entries(str(tmp_path), "checkpoints", {}) == []
        assert list_entries(str(tmp_path / "gone"), "checkpoints", {}) == []
        assert read_entry(str(tmp_path), "checkpoints", "last.pt") is None
