"""How a run ended, told once to whoever asked for it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from clusters.models import Alert
from jobs import lifecycle
from jobs.models import Run
from jobs.states import Reason, RunState
from tests.jobs import builders
from tests.people import client_of, make_contributor, make_owner, make_workspace, principal_of
from workspaces.models import Channel, Delivery, User

pytestmark = pytest.mark.django_db


def channel(*events: str, slug: str = "default", user: User | None = None) -> Channel:
    return Channel.objects.create(
        workspace=make_workspace(slug),
        user=user,
        kind="webhook",
        name="ops",
        target="http://127.0.0.1:9/",
        events=list(events),
    )


def told(channel: Channel) -> list[dict[str, Any]]:
    return list(channel.deliveries.order_by("pk").values_list("body", flat=True))


@pytest.fixture
def run() -> Run:
    return builders.queued(principal_of(make_contributor()))


def end(run: Run, state: RunState, reason: Reason, **facts: Any) -> bool:
    if state is RunState.CANCELED:
        lifecycle.advance(run.pk, RunState.CANCEL_REQUESTED)
    return lifecycle.advance(run.pk, state, reason, facts=facts)


class TestHeader:
    @pytest.mark.parametrize("address", ["/runs/1/", "/runs/1/header/"])
    def test_a_run_shows_what_fires_on_its_gpus(self, run: Run, address: str) -> None:
        machine = builders.node()
        facts = {"holder_label": "run 1", "holder_workspace": run.workspace_id, "gpu": "GPU-a"}
        Alert.objects.create(
            key="gpu_hang:GPU-a",
            kind="gpu_hang",
            node=machine,
            subject="GPU-a",
            holder=run.pk,
            severity="critical",
            state="firing",
            sentence="GPU 0 of alpha hangs.",
            facts=facts,
        )
        page = client_of(make_contributor()).get(address).content.decode()
        assert "Critical: Busy at idle power" in page
        assert "GPU 0 of alpha hangs." in page
        Alert.objects.update(state="cleared")
        assert "GPU 0 of alpha hangs." not in client_of(make_contributor()).get(address).content.decode()


class TestEnded:
    def test_a_failed_run_is_told_with_its_reason_once(self, run: Run) -> None:
        asked = channel("run.failed")
        assert end(run, RunState.FAILED, Reason.EXITED, rank=0, code=1, node="alpha")
        assert not end(run, RunState.FAILED, Reason.EXITED, rank=0, code=1, node="alpha")
        (body,) = told(asked)
        assert body["event"] == "run.failed"
        assert body["text"].startswith(f"[failed] run {run.number}")
        assert body["text"].endswith("Rank 0 exited with code 1 on alpha.")
        assert body["run"]["state"] == "Failed"
        assert body["url"].endswith(f"/runs/{run.number}/")
        assert body.keys() == {"event", "at", "text", "url", "alert", "node", "gpu", "run"}

    def test_a_canceled_run_is_not_a_failed_one(self, run: Run) -> None:
        failed, canceled = channel("run.failed"), channel("run.canceled")
        end(run, RunState.CANCELED, Reason.CANCELED, who="carl")
        assert told(failed) == []
        assert told(canceled)[0]["text"].endswith("Canceled by carl.")

    def test_a_persons_own_channel_hears_only_of_their_own_runs(self, run: Run) -> None:
        mine, theirs = (
            channel("run.failed", user=make_contributor()),
            channel("run.failed", user=make_owner()),
        )
        end(run, RunState.FAILED, Reason.EXITED, rank=0, code=1, node="alpha")
        assert (len(told(mine)), len(told(theirs))) == (1, 0)

    def test_another_workspace_hears_nothing(self, run: Run) -> None:
        other = channel("run.failed", slug="speech")
        end(run, RunState.FAILED, Reason.EXITED, rank=0, code=1, node="alpha")
        assert told(other) == []

    def test_what_is_rolled_back_is_not_told(self, run: Run) -> None:
        channel("run.failed")
        with transaction.atomic():
            end(run, RunState.FAILED, Reason.EXITED, rank=0, code=1, node="alpha")
            transaction.set_rollback(True)
        assert not Delivery.objects.exists()
