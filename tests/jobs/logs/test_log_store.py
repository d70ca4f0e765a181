from __future__ import annotations

import stat
import uuid
from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.logs import log_removal, log_store

NAME = "70_driver_log.txt"


@pytest.fixture
def run() -> str:
    return uuid.uuid4().hex


class TestAppend:
    def test_bytes_survive_unchanged(self, run: str) -> None:
        data = bytes(range(256)) * 10
        assert log_store.append(run, 1, NAME, 0, data) == len(data)
        assert log_store.read(run, 1, NAME, 0, 10_000) == data

    def test_a_repeated_chunk_changes_nothing(self, run: str) -> None:
        log_store.append(run, 1, NAME, 0, b"one\ntwo\n")
        assert log_store.append(run, 1, NAME, 0, b"one\n") == 8
        assert log_store.read(run, 1, NAME, 0, 99) == b"one\ntwo\n"

    def test_of_a_chunk_that_overlaps_only_the_new_bytes_are_written(self, run: str) -> None:
        log_store.append(run, 1, NAME, 0, b"one\n")
        assert log_store.append(run, 1, NAME, 2, b"e\ntwo\n") == 8
        assert log_store.read(run, 1, NAME, 0, 99) == b"one\ntwo\n"

    def test_a_hole_is_refused_and_names_the_offset(self, run: str) -> None:
        log_store.append(run, 1, NAME, 0, b"one\n")
        with pytest.raises(log_store.MissingLogBytes) as refused:
            log_store.append(run, 1, NAME, 10, b"late\n")
        assert refused.value.next_offset == 4
        assert log_store.size(run, 1, NAME) == 4

    def test_files_and_folders_are_the_hubs_alone(self, run: str, settings: Settings, tmp_path: Path) -> None:
        # Where no other test has made a folder of runs.
        settings.DATA_DIR = tmp_path
        log_store.append(run, 1, "logs/deep/er.txt", 0, b"x")
        path = log_store.path(run, 1, "logs/deep/er.txt")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert {stat.S_IMODE(folder.stat().st_mode) for folder in list(path.parents)[:6]} == {0o700}

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "/etc/passwd",
            "../x",
            "logs/../../x",
            "a//b",
            "a/./b",
            "logs/",
            "a\\b",
            "a\x00b",
            "a\nb",
            "else/x.txt",
            "x" * 600,
        ],
    )
    def test_a_name_that_leads_elsewhere_is_refused(self, run: str, name: str) -> None:
        with pytest.raises(log_store.BadLogName):
            log_store.append(run, 1, name, 0, b"x")

    @pytest.mark.parametrize(
        "name", [NAME, "20_environment_build_log.txt", "logs/a b/ü.txt", "node_1/55_preparation_log.txt"]
    )
    def test_names_of_the_contract_are_taken(self, run: str, name: str) -> None:
        assert log_store.append(run, 1, name, 0, b"x") == 1

    @pytest.mark.parametrize("run_id", ["..", "", "A" * 32, "a" * 31])
    def test_only_a_runs_id_names_a_folder(self, run_id: str) -> None:
        with pytest.raises(log_store.BadLogName):
            log_store.append(run_id, 1, NAME, 0, b"x")


class TestRead:
    def test_ranges_are_cut_to_what_is_there(self, run: str) -> None:
        log_store.append(run, 1, NAME, 0, b"0123456789")
        assert log_store.read(run, 1, NAME, 4, 3) == b"456"
        assert log_store.read(run, 1, NAME, 8, 99) == b"89"
        assert log_store.read(run, 1, NAME, 99, 1) == b""

    def test_a_log_of_which_nothing_came_is_empty(self, run: str) -> None:
        assert log_store.read(run, 1, NAME, 0, 10) == b""
        assert log_store.log_sizes(run, 1) == {}

    def test_names_come_with_their_sizes_nested_ones_too(self, run: str) -> None:
        log_store.append(run, 1, "logs/a/b.txt", 0, b"12")
        log_store.append(run, 1, NAME, 0, b"1")
        assert log_store.log_sizes(run, 1) == {NAME: 1, "logs/a/b.txt": 2}


class TestComplete:
    def test_a_log_is_complete_once_it_has_its_final_size(self, run: str) -> None:
        log_store.append(run, 1, NAME, 0, b"1234")
        assert not log_store.is_complete(run, 1, NAME)
        log_store.seal(run, 1, {NAME: 8})
        assert not log_store.is_complete(run, 1, NAME)
        log_store.append(run, 1, NAME, 4, b"5678")
        assert log_store.is_complete(run, 1, NAME)

    def test_where_nothing_more_can_come_what_is_there_is_all(self, run: str) -> None:
        log_store.append(run, 1, NAME, 0, b"1234")
        log_store.close(run, 1)
        assert log_store.is_complete(run, 1, NAME)

    def test_attempts_are_apart(self, run: str) -> None:
        log_store.append(run, 1, NAME, 0, b"first")
        log_store.append(run, 2, NAME, 0, b"second")
        assert log_store.read(run, 1, NAME, 0, 99) == b"first"


def test_remove_takes_everything_of_the_run(run: str) -> None:
    log_store.append(run, 1, NAME, 0, b"1")
    log_removal.remove_run(run)
    assert not log_store.run_folder(run).exists()
