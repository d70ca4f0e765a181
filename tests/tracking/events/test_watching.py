"""Event files that a node sends become metrics of the run, while they grow and once it is over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from django.db import DatabaseError, connection
from pytest_django import DjangoAssertNumQueries, Settings

from jobs.logs import log_store, log_timestamps
from jobs.logs.lanes import build_lanes
from jobs.models import Attempt, Run
from tests.jobs.builders import Played, alive, ended, running, two_nodes
from tests.tracking.events.files import NAME, bare, curve, event, event_file, new, old, session
from tracking.events import event_reader, media_store, pending_attempts
from tracking.events.media_store import StepMedia, StoredMedia
from tracking.metrics.curve_reader import curve_history
from tracking.metrics.point_writer import Point, append
from tracking.models import EventFile, Metric, Param
from trainhub_launch.report import OutputFile
from workspaces import process_caches
from workspaces.access import Principal
from workspaces.servers.exclusive_work import only_once
from workspaces.stored_files import blob_writer, blobs

pytestmark = pytest.mark.django_db
TB = f"logs/tb/{NAME}"


def steps(run: Run, key: str = "loss") -> list[int]:
    return [int(step) for step in curve_history(run.pk, key).step]


def send(node: Played, run: Run, data: bytes, name: str = TB) -> None:
    """The whole file as it is now."""
    stored = log_store.size(run.pk, 1, name)
    node.log(run, name, stored, data[stored:])


def settled(node: Played, run: Run, *outputs: OutputFile, sizes: dict[str, int] | None = None) -> None:
    """The run is over, and the node has told all about it."""
    for phase in ("uploading", "done"):
        node.tell(run, phase, ended(0), outputs=outputs, logs=sizes or {})
    assert node.facts == {}


def output(path: str, data: bytes, tmp_path: Path) -> OutputFile:
    (tmp_path / "blob").write_bytes(data)
    return OutputFile(path, len(data), blob_writer.store_file(tmp_path / "blob"))


class TestGrowing:
    @pytest.mark.parametrize("name", [TB, f"outputs/tb/{NAME}"])
    def test_is_read_as_it_comes_byte_for_byte(self, who: Principal, name: str) -> None:
        node, run = running(who)
        data = event_file(*curve("loss", 3))
        seen = []
        for end in range(1, len(data) + 1, 7):
            send(node, run, data[:end], name)
            pending_attempts.read_pending()
            seen.append(len(steps(run)))
        send(node, run, data, name)
        pending_attempts.read_pending()
        assert steps(run) == [0, 1, 2]
        assert sorted(set(seen)) == [0, 1, 2]

    def test_costs_little_while_nothing_comes(
        self, who: Principal, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        node, run = running(who)
        send(node, run, event_file(*curve("loss", 3)))
        pending_attempts.read_pending()
        # Several workers of a hub on PostgreSQL take turns, by a lease.
        of_lease = 2 if connection.vendor == "postgresql" else 0
        with django_assert_max_num_queries(3 + of_lease):  # parts, attempts, files
            pending_attempts.read_pending()

    def test_is_read_in_pieces_and_without_what_is_too_large_to_be_a_number(
        self, who: Principal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(event_reader, "PIECE_BYTES", 100)
        monkeypatch.setattr(event_reader, "MAX_PIECES_PER_TURN", 3)
        node, run = running(who)
        send(
            node,
            run,
            event_file(*curve("loss", 20), event(bare("graph", [1.0] * 1000)), *curve("loss", 5, first=20)),
        )
        for _ in range(12):
            pending_attempts.read_pending()
        assert steps(run) == list(range(25))

    def test_a_large_record_is_waited_for(self, who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(event_reader, "PIECE_BYTES", 100)
        node, run = running(who)
        before = event_file()
        data = event_file(event(bare("graph", [1.0] * 1000)), *curve("loss", 5))
        for end in (len(before) + 50, len(before) + 2000, len(data)):
            send(node, run, data[:end])
            pending_attempts.read_pending()
        assert steps(run) == list(range(5))

    def test_hyperparameters_are_params_unless_the_script_said_otherwise(self, who: Principal) -> None:
        node, run = running(who)
        Param.objects.create(run=run, experiment=run.experiment, key="lr", value="0.5")
        send(node, run, event_file(event(session({"lr": 0.1, "layers": 3.0}))))
        pending_attempts.read_pending()
        assert dict(run.params.values_list("key", "value")) == {"lr": "0.5", "layers": "3"}

    def test_two_ranks_in_one_folder_keep_their_numbers_apart(self, who: Principal) -> None:
        node, run = running(
            who, distribution={"type": "pytorch", "process_count": 2, "communication_backend": "gloo"}
        )
        node.tell(run, "running", alive(0), alive(1))
        for rank in (1, 0):
            send(node, run, event_file(*curve("loss", 2)), TB.replace(".100.0", f".{100 + rank}.0"))
        pending_attempts.read_pending()
        assert set(Metric.objects.filter(run=run).values_list("key", flat=True)) == {"loss", "rank_1/loss"}

    def test_another_nodes_files_are_told_apart(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        for played in (alpha, beta):
            played.claim(run)
            played.log(run, TB.replace(".100.0", ".77.0"), 0, event_file(*curve("loss", 2)))
        pending_attempts.read_pending()
        assert set(Metric.objects.filter(run=run).values_list("key", flat=True)) == {"loss", "node_1/loss"}


class TestOver:
    def test_what_came_last_is_read_before_it_is_forgotten(self, who: Principal) -> None:
        node, run = running(who)
        data = event_file(*curve("loss", 3))
        send(node, run, data)
        settled(node, run, sizes={TB: len(data)})
        pending_attempts.read_pending()
        assert steps(run) == [0, 1, 2]
        assert EventFile.objects.get().is_whole

    def test_a_file_that_was_not_sent_is_read_from_the_outputs(self, who: Principal, tmp_path: Path) -> None:
        node, run = running(who)
        data = event_file(*curve("loss", 3))
        settled(node, run, output(f"deep/{NAME}", data, tmp_path))
        pending_attempts.read_pending()
        assert steps(run) == [0, 1, 2]

    def test_one_that_was_sent_is_not_read_again_there(self, who: Principal, tmp_path: Path) -> None:
        node, run = running(who)
        data = event_file(*curve("loss", 3))
        send(node, run, data)
        pending_attempts.read_pending()
        settled(node, run, output(TB, data, tmp_path), sizes={TB: len(data)})
        pending_attempts.read_pending()
        process_caches.clear_all()
        pending_attempts.read_pending()
        assert (steps(run), Metric.objects.get().count, EventFile.objects.count()) == ([0, 1, 2], 3, 1)

    def test_one_whose_bytes_are_lost_keeps_none_of_the_others_back(
        self, who: Principal, tmp_path: Path
    ) -> None:
        node, run = running(who)
        lost = output(f"a/{NAME}", event_file(*curve("loss", 3)), tmp_path)
        fine = output(f"b/{NAME}.v2", event_file(*curve("acc", 3)), tmp_path)
        settled(node, run, lost, fine)
        blobs.path(lost.sha256).unlink()
        pending_attempts.read_pending()
        assert {file.name: (file.is_whole, file.error) for file in EventFile.objects.all()} == {
            f"outputs/a/{NAME}": (True, ""),
            f"outputs/b/{NAME}.v2": (True, ""),
        }
        assert Metric.objects.get().count == 3

    def test_a_last_record_that_nobody_finished_is_left(self, who: Principal) -> None:
        node, run = running(who)
        data = event_file(*curve("loss", 3))[:-5]
        send(node, run, data)
        settled(node, run, sizes={TB: len(data)})
        pending_attempts.read_pending()
        file = EventFile.objects.get()
        assert (steps(run), file.is_whole, file.error) == ([0, 1], True, "")


class TestTrouble:
    def test_what_is_no_event_file_is_said_once_and_not_read_again(self, who: Principal) -> None:
        node, run = running(who)
        send(node, run, event_file(*curve("loss", 2)) + b"and then something else")
        pending_attempts.read_pending()
        send(node, run, event_file(*curve("loss", 2)) + b"and then something else, and more")
        pending_attempts.read_pending()
        assert steps(run) == [0, 1]
        sentence = (
            f"{TB} cannot be read from byte {EventFile.objects.get().read_bytes} on: it is damaged "
            "or not an event file."
        )
        assert Attempt.objects.get().warnings == [sentence]
        assert [event.message for event in run.events.all()].count(sentence) == 1

    def test_of_one_file_is_not_the_others(self, who: Principal) -> None:
        node, run = running(who)
        send(node, run, b"text, not events", TB)
        send(node, run, event_file(*curve("loss", 2, kind=new)), f"logs/tb/train/{NAME}")
        pending_attempts.read_pending()
        assert steps(run, "train/loss") == [0, 1]

    def test_a_script_gone_wild_is_stopped_with_the_remedy(self, who: Principal, settings: Settings) -> None:
        settings.METRIC_KEYS_PER_RUN = 3
        node, run = running(who)
        send(node, run, event_file(event(*(old(f"loss {index}", 1.0) for index in range(4)))))
        pending_attempts.read_pending()
        (warning,) = Attempt.objects.get().warnings
        assert "METRIC_KEYS_PER_RUN" in warning

    def test_a_worker_that_dies_while_it_stores_doubles_and_loses_nothing(
        self, who: Principal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        node, run = running(who)
        send(node, run, event_file(*curve("loss", 3)))

        def store_and_die(run_id: str, experiment_id: int, points: Sequence[Point]) -> None:
            append(run_id, experiment_id, points)
            raise SystemError

        with monkeypatch.context() as dying:
            dying.setattr(event_reader, "append", store_and_die)
            pending_attempts.read_pending()
        assert (steps(run), EventFile.objects.get().read_bytes) == ([], 0)
        pending_attempts.read_pending()
        assert (steps(run), Metric.objects.get().count) == ([0, 1, 2], 3)

    def test_a_piece_that_another_worker_stores_first_is_there_once(
        self, who: Principal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        node, run = running(who)
        send(node, run, event_file(*curve("loss", 3)))
        write = media_store.write

        def write_second(run: Run, attempt: int, images: Sequence[StepMedia]) -> list[StoredMedia]:
            monkeypatch.setattr(media_store, "write", write)
            event_reader.read_attempt(Attempt.objects.get(), is_over=False)
            return write(run, attempt, images)

        monkeypatch.setattr(media_store, "write", write_second)
        pending_attempts.read_pending()
        pending_attempts.read_pending()
        assert (steps(run), Metric.objects.get().count) == ([0, 1, 2], 3)

    def test_a_round_leaves_the_files_to_one_that_is_still_reading(self, who: Principal) -> None:
        node, run = running(who)
        send(node, run, event_file(*curve("loss", 3)))
        with only_once("read-events") as may:
            assert may
            pending_attempts.read_pending()
            assert steps(run) == []
        pending_attempts.read_pending()
        assert steps(run) == [0, 1, 2]

    def test_of_the_database_is_tried_again(self, who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
        node, run = running(who)
        send(node, run, data := event_file(*curve("loss", 3)))
        settled(node, run, sizes={TB: len(data)})

        def full(*given: object) -> None:
            raise DatabaseError("full")

        with monkeypatch.context() as broken:
            broken.setattr(event_reader, "append", full)
            pending_attempts.read_pending()
        pending_attempts.read_pending()
        assert steps(run) == [0, 1, 2]


class TestLogs:
    def test_do_not_show_it(self, who: Principal) -> None:
        node, run = running(who)
        send(node, run, event_file(*curve("loss", 3)))
        node.log(run, "logs/notes.txt", 0, b"hello\n")
        assert [lane.name for lane in build_lanes(run, 1, [], None).others] == ["logs/notes.txt"]
        assert not log_timestamps._path((run.pk, 1, TB)).exists()
        assert log_store.read(run.pk, 1, TB, 0, 10**6) == event_file(*curve("loss", 3))
