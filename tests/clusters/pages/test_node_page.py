from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from clusters.enrolment.node_tokens import enrol_node, revoke_node
from clusters.leases import acquire
from clusters.models import Hearing, Node
from clusters.node_reports import heartbeat, notices
from tests.clusters.builders import GIB, beat, cluster, gpu, ready_node, slots_wanted
from tests.clusters.pages.test_pages import text_of
from tests.markup import one_line
from tests.people import client_of, make_operator, make_viewer, make_workspace

pytestmark = pytest.mark.django_db


class TestNodePage:
    def test_shows_facts_interpreters_and_live_numbers(self) -> None:
        node, _ = enrol_node("local", "alpha")
        told = gpu(
            "GPU-a", utilization_pct=87.0, memory_used_bytes=70 * GIB, power_w=512.0, temperature_c=61.0
        )
        heartbeat.apply(node, beat(told, mpi="Open MPI 4.1.4", run_as="trainer"), timezone.now())
        page = text_of(client_of(make_viewer()), "/nodes/alpha/")
        for words in (
            "GPU-a",
            "NVIDIA H200",
            "87 %",
            "70 GiB",
            "512 W",
            "61 °C",
            "Open MPI 4.1.4",
            "trainer",
            "bin/python3",
        ):
            assert words in page, words

    def test_a_number_that_the_device_cannot_tell_is_absent_not_zero(self) -> None:
        ready_node("alpha", "GPU-a")
        page = text_of(client_of(make_viewer()), "/nodes/alpha/", HX_Request="true")
        assert "Power" not in page
        assert "0 W" not in page

    def test_a_silent_node_says_what_that_means(self) -> None:
        node = ready_node("alpha")
        now = timezone.now()
        Hearing.objects.create(pk=1, since=now - timedelta(days=1), until=now + timedelta(days=1))
        Node.objects.filter(pk=node.pk).update(last_report_at=now - timedelta(minutes=5))
        page = text_of(client_of(make_viewer()), "/nodes/alpha/")
        assert "Lost" in page
        assert "Check that the machine is up" in page

    def test_a_revoked_node_says_how_to_bring_it_back(self) -> None:
        revoke_node(ready_node("alpha"))
        assert "manage.py node token alpha" in one_line(text_of(client_of(make_viewer()), "/nodes/alpha/"))

    def test_what_a_node_says_of_itself_is_shown_as_text(self) -> None:
        ready_node("alpha", hostname="<script>alert(1)</script>")
        assert "<script>alert(1)" not in text_of(client_of(make_viewer()), "/nodes/alpha/")


class TestRevoke:
    def test_an_operator_revokes_by_post_only(self) -> None:
        node = ready_node("alpha")
        browser = client_of(make_operator())
        assert "Revoke" in text_of(browser, "/nodes/alpha/")
        assert browser.get("/nodes/alpha/revoke/").status_code == 405
        assert browser.post("/nodes/alpha/revoke/").status_code == 302
        assert Node.objects.get(pk=node.pk).revoked_at is not None
        page = text_of(browser, "/nodes/alpha/")
        assert "Revoked by olivia" in page
        assert browser.post("/nodes/alpha/revoke/").status_code == 404


class TestNotices:
    def page(self, **changed: Any) -> str:
        Node.objects.filter(name="alpha").update(**changed)
        return text_of(client_of(make_viewer()), "/nodes/alpha/")

    def test_a_healthy_node_has_none(self) -> None:
        ready_node("alpha", agent_version=notices.agent_version())
        assert 'class="th-note' not in self.page()

    def test_a_clock_that_is_off_is_told(self) -> None:
        ready_node("alpha")
        assert "12 s behind the hub" in self.page(clock_offset_s=12.0).replace("&#x27;", "'")

    def test_a_disk_that_is_nearly_full_is_told(self) -> None:
        ready_node("alpha")
        assert "Only 1.5 GiB are free" in self.page(vitals={"disk_low": True, "disk_free_bytes": 1.5 * GIB})

    def test_an_agent_of_another_version_is_told(self) -> None:
        ready_node("alpha", agent_version="0.0.1")
        page = self.page().replace("&#x27;", "'")
        assert f"version 0.0.1, the hub's is {notices.agent_version()}" in page

    def test_slots_that_are_all_taken_are_told(self) -> None:
        ready_node("alpha", slots=2)
        with transaction.atomic():
            acquire(
                cluster(),
                slots_wanted(2),
                holder="a" * 32,
                attempt=1,
                label="run 1",
                workspace=make_workspace(),
            )
        assert "All 2 process slots are taken" in self.page()

    def test_what_happened_is_listed_with_its_time(self) -> None:
        ready_node("alpha")
        assert "Reported for the first time: box.lan at 10.0.0.7." in self.page()


class TestOutdatedAgents:
    def test_are_listed_for_operators_only(self) -> None:
        ready_node("alpha", agent_version="0.0.1")
        ready_node("beta", agent_version=notices.agent_version())
        text = " ".join(client_of(make_operator()).get("/clusters/").content.decode().split())
        assert f"1 node runs another version of the agent than this hub's, {notices.agent_version()};" in text
        assert '<a href="/nodes/alpha/">alpha</a> </div>' in text
        assert "another version" not in client_of(make_viewer()).get("/clusters/").content.decode()

    def test_are_not_mentioned_if_there_are_none(self) -> None:
        ready_node("beta", agent_version=notices.agent_version())
        assert "another version" not in client_of(make_operator()).get("/clusters/").content.decode()
