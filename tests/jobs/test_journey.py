from __future__ import annotations

import pytest

from clusters.models import Lease
from jobs.models import Member, Run
from jobs.states import MemberState, RunState
from tests.jobs.builders import Played, alive, ended, launched, node, processes
from workspaces.access import Principal

pytestmark = pytest.mark.django_db


def test_a_run_goes_from_submission_to_completed(who: Principal) -> None:
    alpha = Played(node())
    run = launched(who, distribution=processes(2))
    assert run.state == RunState.PROVISIONING

    order = alpha.claim(run)
    assert [process.log_name for process in order.command.processes] == [
        "70_driver_log_0.txt",
        "70_driver_log_1.txt",
    ]
    assert alpha.log(run, "70_driver_log_0.txt", 0, b"epoch 1\n") == 8

    alpha.tell(run, "preparing")
    alpha.tell(run, "running", alive(0), alive(1))
    run.refresh_from_db()
    assert run.state == RunState.RUNNING
    alpha.tell(run, "uploading", ended(0), ended(1))
    ack = alpha.tell(run, "done", logs={"70_driver_log_0.txt": 8})

    run.refresh_from_db()
    assert (run.state, run.sentence) == (RunState.COMPLETED, "All ranks finished.")
    assert ack.settled == ((run.pk, 1),)
    assert set(Member.objects.values_list("state", flat=True)) == {MemberState.SUCCEEDED}
    assert not Lease.objects.filter(released_at=None).exists()
    assert [event.to_state for event in run.events.all()] == [
        "Queued",
        "Provisioning",
        "Preparing",
        "Running",
        "Finalizing",
        "Completed",
    ]
    assert Run.objects.get().started_at
