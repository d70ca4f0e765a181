from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from pytest_django import DjangoAssertNumQueries, Settings

from clusters import journal
from clusters.enrolment.node_tokens import enrol_node, revoke_node
from clusters.models import Gpu, Hearing, Node
from clusters.node_reports import gpu_sync, heartbeat, heartbeat_writer, hub_uptime
from clusters.node_reports.hub_uptime import MAX_PULSE_GAP, PULSE_S, pulse, pulse_while_serving
from tests.clusters.builders import GIB, beat, gpu, ready_node
from trainhub_launch.errors import WireError
from workspaces import background_loop

pytestmark = pytest.mark.django_db
# Later than any process that runs this test could have started.
NOW = datetime(2099, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def heard_between(since: float, until: float) -> None:
    Hearing.objects.update_or_create(pk=1, defaults={"since": after(since), "until": after(until)})


class TestApply:
    def test_the_first_heartbeat_fills_the_inventory(self) -> None:
        node = ready_node("alpha", "GPU-a", "GPU-b", at=NOW)
        assert (node.cores, node.slots, node.address, node.last_report_at) == (8, 32, "10.0.0.7", NOW)
        assert node.interpreters == [{"path": "/usr/bin/python3", "version": "3.11.7"}]
        assert [device.uuid for device in node.gpus.all()] == ["GPU-a", "GPU-b"]

    def test_vitals_keep_what_is_known_and_leave_out_what_is_not(self) -> None:
        node, _ = enrol_node("local", "alpha")
        heartbeat.apply(node, beat(gpu("GPU-a", utilization_pct=0.0, power_w=None)), NOW)
        node.refresh_from_db()
        assert node.vitals["memory_used_bytes"] == 20 * GIB
        assert node.vitals["gpus"] == {"GPU-a": {"utilization_pct": 0.0}}

    def test_a_second_report_within_a_second_writes_nothing(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        node = ready_node(at=NOW)
        with django_assert_num_queries(0):
            heartbeat.apply(node, beat(cpu_pct=99.0), after(0.9))

    def test_changed_inventory_is_written_at_once(self) -> None:
        node = ready_node(at=NOW)
        heartbeat.apply(node, beat(slots=4), after(0.1))
        assert Node.objects.get(pk=node.pk).slots == 4

    def test_a_report_without_heartbeat_still_counts_as_life(self) -> None:
        node = ready_node(at=NOW)
        heartbeat.apply(node, None, after(2))
        assert Node.objects.get(pk=node.pk).last_report_at == after(2)

    def test_a_gpu_that_is_gone_is_kept_as_absent_and_comes_back(self) -> None:
        node = ready_node("alpha", "GPU-a", "GPU-b", at=NOW)
        heartbeat.apply(node, beat(gpu("GPU-b", 1)), after(2))
        assert dict(Gpu.objects.values_list("uuid", "present")) == {"GPU-a": False, "GPU-b": True}
        heartbeat.apply(node, beat(gpu("GPU-a"), gpu("GPU-b", 1)), after(4))
        assert all(Gpu.objects.values_list("present", flat=True))

    def test_gpus_of_a_node_whose_driver_cannot_be_read_are_lost_and_not_removed(self) -> None:
        node = ready_node("alpha", "GPU-a")
        sentence = "The NVIDIA driver is not loaded: run nvidia-smi there."
        heartbeat.apply(node, beat(nvml=sentence), NOW + timedelta(seconds=2))
        assert Gpu.objects.values_list("present", "state", "error").get() == (True, "lost", sentence)
        heartbeat.apply(node, beat(gpu("GPU-a")), NOW + timedelta(seconds=4))
        assert Gpu.objects.values_list("present", "state", "error").get() == (True, "ok", "")

    def test_a_gpu_moves_with_its_uuid_to_another_machine(self) -> None:
        old = ready_node("alpha", "GPU-a", at=NOW)
        heartbeat.apply(old, beat(), after(2))
        new = ready_node("beta", "GPU-a", at=after(3))
        assert Gpu.objects.get(pk="GPU-a").node == new

    def test_a_node_cannot_take_the_gpu_of_another_living_node(self) -> None:
        owner = ready_node("alpha", "GPU-a", at=NOW)
        thief = ready_node("beta", "GPU-a", at=after(1))
        assert Gpu.objects.get(pk="GPU-a").node == owner
        assert thief.vitals["gpus_elsewhere"] == ["GPU-a"]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"cores": -1},
            {"cores": "8"},
            {"slots": 10**9},
            {"hostname": "x" * 300},
            {"hostname": None},
            {"cpu_pct": "hot"},
            {"memory_bytes": 2**70},
            {"address": "a\x00b"},
            {"gpus": tuple(gpu(f"GPU-{n}") for n in range(65))},
            {"gpus": tuple(replace(gpu(f"MIG-{n}"), parent="GPU-a") for n in range(513))},
        ],
    )
    def test_a_value_that_no_machine_has_is_refused_whole(self, wrong: dict[str, Any]) -> None:
        node = ready_node(at=NOW)
        gpus = wrong.pop("gpus", ())
        with pytest.raises(WireError):
            heartbeat.apply(node, beat(*gpus, **wrong), after(5))
        assert Node.objects.get(pk=node.pk).last_report_at == NOW

    def test_not_a_number_becomes_unknown(self) -> None:
        node, _ = enrol_node("local", "alpha")
        heartbeat.apply(node, beat(gpu("GPU-a", power_w=float("nan")), cpu_pct=float("inf")), NOW)
        node.refresh_from_db()
        assert node.vitals["cpu_pct"] is None
        assert node.vitals["gpus"] == {"GPU-a": {}}


class TestWithoutQueries:
    def test_a_node_with_runs_that_returns_from_silence_needs_its_rows(self) -> None:
        node = ready_node(at=NOW)
        heard_between(-1000, 1000)
        hub_uptime.refresh()
        gpu_sync.refresh()
        with background_loop.going():
            assert not heartbeat.apply_numbers(node, beat(), after(40))
            assert heartbeat.apply_numbers(node, beat(), after(40), has_runs=False)

    def test_a_return_needs_them_while_nobody_knows_how_long_the_hub_listened(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hub_uptime, "_cached_window", (float("-inf"), None))
        node = ready_node(at=NOW)
        gpu_sync.refresh()
        with background_loop.going():
            assert not heartbeat.apply_numbers(node, beat(), after(40), has_runs=False)
            assert heartbeat.apply_numbers(node, beat(), after(5))

    def test_gpus_are_read_again_only_after_a_while(
        self, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        gpu_sync.refresh()
        with django_assert_num_queries(0):
            gpu_sync.refresh()

    def test_what_arrives_while_a_write_fails_is_written_with_what_it_should_have_written(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        alpha, beta = (ready_node(name, at=NOW) for name in ("alpha", "beta"))
        returned = "Reports again, after 40 s of silence."
        alpha.vitals["cpu_pct"] = 77.0
        heartbeat_writer.record(alpha, after(5), alpha.vitals, returned=returned)

        def fail(*_: object) -> None:
            for node in (alpha, beta):
                heartbeat_writer.record(node, after(10), None)
            raise DatabaseError

        with monkeypatch.context() as patched:
            patched.setattr(journal, "record_events", fail)
            with pytest.raises(DatabaseError):
                heartbeat_writer.write()
        heartbeat_writer.write()
        assert set(Node.objects.values_list("last_report_at", flat=True)) == {after(10)}
        assert Node.objects.get(name="alpha").vitals["cpu_pct"] == 77.0
        assert [event.message for event in journal.recent_events(alpha, 1)] == [returned]


class TestStatus:
    @pytest.mark.parametrize(
        ("silent_s", "expected"),
        [
            (0, "ready"),
            (9.9, "ready"),
            (10, "unreachable"),
            (59.9, "unreachable"),
            (60, "lost"),
            (10**6, "lost"),
        ],
    )
    def test_silence_decides(self, settings: Settings, silent_s: float, expected: str) -> None:
        settings.NODE_UNREACHABLE_AFTER, settings.NODE_LOST_AFTER = 10, 60
        node = ready_node(at=NOW)
        assert heartbeat.status(node, after(silent_s)) == expected

    def test_a_node_that_never_reported_is_new(self) -> None:
        assert heartbeat.status(enrol_node("local", "alpha")[0], NOW) == "new"

    def test_a_revoked_node_is_revoked_whatever_it_says(self) -> None:
        node = ready_node(at=NOW)
        revoke_node(node)
        assert heartbeat.status(node, NOW) == "revoked"

    def test_silence_from_before_the_hub_started_does_not_count(self) -> None:
        node = ready_node(at=NOW)
        heard_between(since=3600, until=3605)
        assert heartbeat.status(node, after(3605)) == "ready"
        assert heartbeat.silence_s(node, after(3605)) == 5

    def test_while_the_hub_is_deaf_time_stands_still(self) -> None:
        node = ready_node(at=NOW)
        heard_between(since=-100, until=4)
        assert (
            heartbeat.silence_s(node, after(4 + MAX_PULSE_GAP.total_seconds()))
            == 4 + MAX_PULSE_GAP.total_seconds()
        )
        assert heartbeat.silence_s(node, after(3600)) == 4


def refuse(*_: object) -> None:
    raise DatabaseError("the disk is full")


@pytest.mark.django_db(transaction=True)
class TestListening:
    async def test_a_server_pulses_from_its_start_to_its_end(self) -> None:
        async with pulse_while_serving(None), asyncio.timeout(10):
            while not await Hearing.objects.aexists():
                await asyncio.sleep(0)

    def test_a_pulse_that_fails_is_logged_and_the_next_one_counts(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        with connection.execute_wrapper(refuse):
            hub_uptime._pulse_once(())
        assert "The hub could not record that it listens" in caplog.text
        hub_uptime._pulse_once(())
        assert Hearing.objects.exists()


class TestPulse:
    def test_pulses_in_step_extend_one_span(self) -> None:
        pulse(NOW)
        pulse(after(PULSE_S))
        row = Hearing.objects.get()
        assert (row.since, row.until) == (NOW, after(PULSE_S))

    def test_a_gap_begins_a_new_span(self) -> None:
        pulse(NOW)
        pulse(after(3600))
        row = Hearing.objects.get()
        assert (row.since, row.until) == (after(3600), after(3600))

    def test_who_waits_for_its_turn_is_heard_all_the_same(self) -> None:
        waiting, silent = (enrol_node("local", name)[0] for name in ("waiting", "silent"))
        Node.objects.update(last_report_at=NOW)
        pulse(after(8), [waiting.pk])
        waiting.refresh_from_db()
        silent.refresh_from_db()
        assert (waiting.last_report_at, silent.last_report_at) == (after(8), NOW)

    def test_a_report_waits_from_its_arrival_to_its_answer(self) -> None:
        node, _ = enrol_node("local", "talking")
        with hub_uptime.report_in_progress(node), hub_uptime.report_in_progress(node):
            assert node.pk in hub_uptime._reports_in_progress
        assert node.pk not in hub_uptime._reports_in_progress
