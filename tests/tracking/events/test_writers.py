"""How the numbers of an event file are named in the run."""

from __future__ import annotations

import pytest

from tracking.events.writers import Ranks, parse_name, tag_prefix

TWO_RANKS = {(0, 100): 0, (0, 101): 1}


def file(
    folder: str, *, pid: int = 100, second: int = 1700000000, number: int = 0, host: str = "gpu-1.example.org"
) -> str:
    return f"{folder}/events.out.tfevents.{second}.{host}.{pid}.{number}"


def prefixes(*names: str, ranks: Ranks | None = None) -> list[str]:
    known = [parse_name(name) for name in names]
    return [tag_prefix(of, known, ranks or {(0, 100): 0}) for of in known]


class TestFolders:
    @pytest.mark.parametrize(
        "folder",
        [
            "logs",
            "logs/tb",
            "outputs/runs/Nov21_10-00-00_gpu-1",
            "logs/lightning_logs/version_3",
            "logs/1700000000.25",
        ],
    )
    def test_of_the_only_writer_are_not_told(self, folder: str) -> None:
        assert prefixes(file(folder)) == [""]

    def test_of_keras_tell_training_from_validation(self) -> None:
        begun = "logs/fit/20261121-101010"
        assert prefixes(file(f"{begun}/train"), file(f"{begun}/validation", number=1)) == [
            "train/",
            "validation/",
        ]
        assert prefixes(file(f"{begun}/train")) == ["train/"]

    def test_of_several_values_of_one_tag_are_told(self) -> None:
        names = file("logs"), file("logs/loss_generator", number=1), file("logs/loss_critic", number=2)
        assert prefixes(*names) == ["", "loss_generator/", "loss_critic/"]

    def test_beside_the_first_are_told(self) -> None:
        assert prefixes(file("logs/a"), file("logs/b"), file("outputs/c")) == ["", "b/", "outputs/c/"]

    def test_that_add_hparams_makes_are_not_told(self) -> None:
        assert prefixes(file("logs/tb"), file("logs/tb/1700000000.1234", number=1)) == ["", ""]

    def test_of_ranks_are_told_of_all_of_them(self) -> None:
        names = file("logs/rank1", pid=101), file("logs/rank0")
        assert prefixes(*names, ranks=TWO_RANKS) == ["rank1/", "rank0/"]


class TestProcesses:
    def test_of_one_folder_bear_their_rank_but_for_the_first(self) -> None:
        assert prefixes(file("logs/tb", pid=101), file("logs/tb"), ranks=TWO_RANKS) == ["rank_1/", ""]

    def test_of_another_node_too(self) -> None:
        names = file("logs/tb"), file("node_1/logs/tb/validation", pid=100, host="gpu-2")
        assert prefixes(*names, ranks={(0, 100): 0, (1, 100): 2}) == ["", "rank_2/validation/"]

    def test_that_a_launcher_has_started_are_counted(self) -> None:
        names = (
            file("logs", pid=7),
            file("logs", pid=8),
            file("logs", pid=7, number=1),
            file("node_1/logs", pid=7, host="gpu-2"),
        )
        assert prefixes(*names) == ["", "process_2/", "", "node_1/"]

    def test_that_write_a_second_file_go_on(self) -> None:
        assert prefixes(file("logs"), file("logs", second=1700000900, number=3)) == ["", ""]


class TestNames:
    def test_of_old_writers_tell_no_process(self) -> None:
        result = parse_name("logs/events.out.tfevents.1700000000.gpu-1")
        assert (result.second, result.pid, result.folder) == (1700000000, None, ("logs",))

    def test_of_tensorflow_end_otherwise(self) -> None:
        assert parse_name("logs/train/events.out.tfevents.1700000000.gpu-1.42.3.v2").process == (
            0,
            "gpu-1",
            42,
        )

    def test_of_anything_are_taken(self) -> None:
        assert parse_name("logs/my.tfevents").age == (0, 0, 0, "logs/my.tfevents")

    def test_where_keras_writes_what_it_throws_away_is_known(self) -> None:
        assert parse_name(file("logs/workertemp_1/train")).is_temporary
