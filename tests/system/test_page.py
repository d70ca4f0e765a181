"""The page System and its API: for operators, with the figures of all processes."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone

from jobs.prometheus.launch_delays import launch_delays
from tests.jobs import builders
from tests.people import api_client, make_contributor, make_operator, principal_of
from trainhub.system_page.summary import STARTING_FOR
from workspaces.hub_metrics.instruments import QUEUED_MESSAGES, REQUEST_SECONDS, ROUND_LATE_SECONDS
from workspaces.hub_metrics.models import HubProcess
from workspaces.hub_metrics.publisher import SILENT_AFTER, Publisher
from workspaces.hub_metrics.rounds import measured_round
from workspaces.servers import server_registry
from workspaces.servers.server_registry import OwnProcess

pytestmark = pytest.mark.django_db


def measured() -> None:
    """A web server and a worker that have done something."""
    worker = Publisher("worker", "0.1.0")
    web = Publisher("web", "0.1.0")
    for publisher in (worker, web):
        publisher.publish()
    REQUEST_SECONDS.labels("GET", "/tests/slow/", "5xx").observe(4.0)
    with measured_round("tests.page"):
        ROUND_LATE_SECONDS.labels("tests.page").set(1.5)
    QUEUED_MESSAGES.labels("hub").set(12)
    worker.publish()
    HubProcess.objects.filter(kind="web").update(measured_at=timezone.now() - 2 * SILENT_AFTER)


def test_is_for_operators_alone(client: Client) -> None:
    someone = make_contributor()
    client.force_login(someone)
    assert client.get("/system/").status_code == 403
    assert api_client(someone).get("/api/v1/system/").status_code == 403


def test_shows_what_processes_have_measured(client: Client) -> None:
    measured()
    client.force_login(make_operator())
    page = re.sub(r"<[^>]+>|\s+", " ", client.get("/system/").content.decode())
    assert re.search(r"GET /tests/slow/ +1 +1 +≤ 5 s +≤ 5 s", page)
    assert re.search(r"tests\.page +1 +0 +≤ 2 ms +≤ 2 ms +1.5 s", page)
    assert re.search(r"Messages for the workers +12", page)
    assert re.search(r"web@\S+ +silent", page)
    assert "No worker says that it runs" not in page
    assert "<html" not in client.get("/system/", headers={"HX-Request": "true"}).content.decode()


def test_shows_the_servers_and_what_is_wrong_with_them(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on PostgreSQL.
    monkeypatch.setattr(server_registry, "is_shareable", lambda: True)
    monkeypatch.setattr(server_registry, "clock_offset_s", lambda: -61.0)
    server_registry.register_process(OwnProcess(server_registry.WEB, "10.0.0.5:8010"))
    operator = make_operator()
    client.force_login(operator)
    page = re.sub(r"<[^>]+>|\s+", " ", client.get("/system/").content.decode())
    assert re.search(r"web +10\.0\.0\.5:8010 +\S+ +-61\.00 s +lives", page)
    assert "is 61 s behind that of the database. Have it set by NTP" in page
    scraped = api_client(operator).get("/metrics").content.decode()
    assert "\ntrainhub_server_warnings 1.0\n" in scraped


def test_says_that_no_worker_runs_but_not_at_once(client: Client) -> None:
    Publisher("web", "0.1.0").publish()
    client.force_login(make_operator())
    page = client.get("/system/").content.decode()
    assert "The hub was started a moment ago" in page
    assert "No worker says that it runs" not in page
    HubProcess.objects.update(started_at=timezone.now() - STARTING_FOR)
    assert "No worker says that it runs" in client.get("/system/").content.decode()


def test_the_api_answers_numbers() -> None:
    measured()
    REQUEST_SECONDS.labels("GET", "/tests/endless/", "2xx").observe(400.0)
    Publisher("worker", "0.1.0").publish()
    answer = api_client(make_operator()).get("/api/v1/system/").json()
    assert {process["kind"]: process["is_silent"] for process in answer["processes"]} == {
        "web": True,
        "worker": False,
    }
    assert {"name": "Messages for the workers", "waiting": 12, "oldest_at": None} in answer["backlogs"]
    assert answer["database_bytes"] > 0
    assert 0 < answer["disk_free_bytes"] < answer["disk_total_bytes"]


def test_launches_are_measured_step_by_step() -> None:
    who = principal_of(make_contributor())
    builders.running(who)
    steps = {step.name: step for step in launch_delays(timezone.now())}
    assert [*steps] == ["queue", "claim", "prepare"]
    assert [step.count for step in steps.values()] == [1, 1, 1]
    assert all(step.median_s is not None and 0 <= step.median_s < 60 for step in steps.values())


def test_prometheus_gets_the_processes_for_operators_alone() -> None:
    measured()
    operators, others = (
        api_client(user).get("/metrics").content.decode() for user in (make_operator(), make_contributor())
    )
    assert 'trainhub_queued_messages{process="worker@' in operators
    assert 'route="/tests/slow/"' in operators
    assert "trainhub_queued_messages" not in others
