"""Runs on a real Slurm: nodes without root for the agent, without a service and without a shared folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hub import eventually
from tests.slurm.hub import CLUSTER, PATIENCE_S, SlurmHub

pytestmark = [pytest.mark.slow, pytest.mark.slurm]
ALONE = "import os; print(os.getuid(), os.uname().nodename, flush=True)"
# Rank 0 hears of all others, at the address that the plan names.
MEET = """
import os, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
print("rank", rank, "of", size, "on", os.uname().nodename, flush=True)
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(("", port)) as server:
        print("met", sorted(server.accept()[0].recv(9) for _ in range(size - 1)), flush=True)
else:
    for _ in range(300):
        try:
            socket.create_connection((host, port)).sendall(str(rank).encode())
            break
        except OSError:
            time.sleep(0.1)
"""
WAIT = "import time; print('here', flush=True); time.sleep(600)"
SAVE = """
import signal, sys, time
def save(*_):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("here", flush=True)
while True:
    time.sleep(1)
"""
FIRST_LOG = "70_driver_log_0.txt"
PRETENDS_TO_BE_OLD = """#!/bin/sh
exec /usr/bin/python3 -I -c "
import platform, sys
program, sys.version_info = sys.argv[3], (3, 9, 1)
platform.python_version = lambda: '3.9.1'
sys.argv = ['-c', *sys.argv[4:]]
exec(program)
" "$@"
"""
# More than half of a node's memory: a second such run waits, or gets another node.
MOST = {"memory": 2_500_000_000}


@pytest.fixture(autouse=True)
def _leaves_nothing(slurm_hub: SlurmHub) -> Iterator[None]:
    yield
    slurm_hub.clear()


class TestTraining:
    def test_a_run_is_the_persons_own_process(self, slurm_hub: SlurmHub) -> None:
        run = slurm_hub.script(ALONE)
        slurm_hub.completes(run)
        assert slurm_hub.runs.log(run).split()[0] == b"64101"
        eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "its job ends by itself")

    def test_ranks_on_two_nodes_meet(self, slurm_hub: SlurmHub) -> None:
        run = slurm_hub.script(MEET, nodes=2, processes=4, resources={"gpus_per_node": 0})
        slurm_hub.completes(run)
        first = slurm_hub.runs.log(run, FIRST_LOG)
        assert b"met [b'1', b'2', b'3']" in first
        machines = {
            slurm_hub.runs.log(run, f"70_driver_log_{rank}.txt").split(b" on ")[1].split()[0]
            for rank in range(4)
        }
        assert len(machines) == 2

    @pytest.mark.long
    def test_nodes_are_listed_only_while_a_job_has_them(self, slurm_hub: SlurmHub) -> None:
        run = slurm_hub.script(WAIT)
        slurm_hub.starts(run)
        # Those of earlier jobs leave the list within seconds.
        eventually(
            lambda: [node["status"] for node in _nodes(slurm_hub)] == ["ready"], PATIENCE_S, "one is listed"
        )
        slurm_hub.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
        assert slurm_hub.ended(run)["state"] == "Canceled"
        eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "its job ends by itself")
        eventually(lambda: not _nodes(slurm_hub), PATIENCE_S, "the node is listed no more")


@pytest.mark.long
class TestWaiting:
    def test_the_page_says_what_slurm_says(self, slurm_hub: SlurmHub) -> None:
        running = slurm_hub.script(WAIT, nodes=3, processes=3, resources=MOST)
        slurm_hub.runs.until(running, "Running", seconds=90)
        waiting = slurm_hub.script("print('done')", resources=MOST)
        assert "nodes, GPUs, processors or memory" in slurm_hub.waits(waiting, "Waits until enough")
        job = slurm_hub.job(waiting)
        slurm_hub.slurm.admin("scontrol", "hold", job)
        slurm_hub.waits(waiting, "held")
        slurm_hub.slurm.admin("scontrol", "release", job)
        slurm_hub.runs.client.post(f"/api/v1/runs/{running}/cancel/").raise_for_status()
        slurm_hub.completes(waiting)

    def test_a_waiting_run_that_is_canceled_leaves_slurms_queue(self, slurm_hub: SlurmHub) -> None:
        slurm_hub.slurm.admin("scontrol", "update", "PartitionName=main", "State=DOWN")
        try:
            run = slurm_hub.script(ALONE)
            slurm_hub.waits(run, "partition")
            slurm_hub.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
            assert slurm_hub.ended(run)["state"] == "Canceled"
            eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "its job is canceled")
        finally:
            slurm_hub.slurm.admin("scontrol", "update", "PartitionName=main", "State=UP")


class TestEnds:
    def test_what_slurm_refuses_fails_in_its_own_words(self, slurm_hub: SlurmHub) -> None:
        slurm_hub.change(account="nobodys")
        try:
            ended = slurm_hub.ended(slurm_hub.script(ALONE))
        finally:
            slurm_hub.change(account="")
        assert ended["state"] == "Failed"
        assert "Slurm refused" in ended["sentence"]
        assert "Invalid account" in ended["sentence"]
        assert slurm_hub.jobs() == []

    def test_a_rank_that_fails_is_the_reason(self, slurm_hub: SlurmHub) -> None:
        ended = slurm_hub.ended(slurm_hub.script("raise SystemExit(3)"))
        assert (ended["state"], ended["sentence"]) == ("Failed", "Rank 0 exited with code 3 on hpc-n1.")

    def test_a_node_program_that_does_not_start_is_said_with_where_it_says_why(
        self, slurm_hub: SlurmHub
    ) -> None:
        slurm_hub.change(python="/usr/bin/false")
        try:
            run = slurm_hub.script(ALONE)
            ended = slurm_hub.ended(run)
        finally:
            slurm_hub.restore_python()
        assert ended["state"] == "Failed"
        log = f"{slurm_hub.logs}/trainhub-{slurm_hub.job(run)}.log"
        assert f"None of its nodes had reported to the hub: {log} says why." in ended["sentence"]
        assert "exit code 1" in Path(log).read_text()

    @pytest.mark.long
    def test_a_python_that_is_too_old_says_so_on_the_page(self, slurm_hub: SlurmHub) -> None:
        old = slurm_hub.slurm.folder / "python3.9"
        old.write_text(PRETENDS_TO_BE_OLD)
        old.chmod(0o755)
        slurm_hub.change(python=str(old))
        try:
            ended = slurm_hub.ended(slurm_hub.script(ALONE))
        finally:
            slurm_hub.restore_python()
        assert ended["state"] == "Failed"
        assert (
            "On n1: /usr/bin/python3 is Python 3.9.1, and TrainHub needs 3.11 or newer." in ended["sentence"]
        )

    def test_a_person_without_an_account_there_is_refused(self, slurm_hub: SlurmHub) -> None:
        accounts = f"/api/v1/clusters/{CLUSTER}/unix-accounts/"
        slurm_hub.runs.client.delete(accounts, params={"person": "admin"}).raise_for_status()
        try:
            ended = slurm_hub.ended(slurm_hub.script(ALONE))
        finally:
            entry = {"person": "admin", "account": "ada"}
            slurm_hub.runs.client.put(accounts, json=entry).raise_for_status()
        assert ended["state"] == "Failed"
        assert "has no Unix account for admin; ask an operator" in ended["sentence"]
        assert slurm_hub.jobs() == []

    @pytest.mark.long
    def test_the_ranks_are_told_of_the_time_limit(self, slurm_hub: SlurmHub) -> None:
        run = slurm_hub.script(SAVE)
        slurm_hub.starts(run)
        # Its warning is due 70 s before the end.
        slurm_hub.slurm.admin("scontrol", "update", f"JobId={slurm_hub.job(run)}", "TimeLimit=1")
        ended = slurm_hub.ended(run)
        assert (ended["state"], ended["reason"]) == ("Failed", "limit_outside")
        assert b"saved" in slurm_hub.runs.log(run)

    @pytest.mark.long
    def test_a_node_that_vanishes_costs_no_retry(self, slurm_hub: SlurmHub) -> None:
        slurm_hub.slurm.reconfigure(SlurmdTimeout="5", MessageTimeout="2")
        run = slurm_hub.script(WAIT)
        slurm_hub.starts(run)
        (name,) = slurm_hub.slurm.admin("squeue", "-h", "-o", "%N").split()
        machine = slurm_hub.slurm.nodes[name]
        machine.cut()
        try:
            eventually(lambda: slurm_hub.runs.detail(run)["attempt"] == 2, 120, "it is tried again")
            slurm_hub.runs.until(run, "Running", seconds=60)
            events = slurm_hub.runs.get(f"/runs/{run}/events/")
            assert any("NODE_FAIL" in event["message"] for event in events)
        finally:
            machine.heal()
            slurm_hub.slurm.reconfigure()
            slurm_hub.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
            slurm_hub.ended(run)
            slurm_hub.slurm.wait_until_idle()


@pytest.mark.long
class TestInterruptions:
    def test_a_controller_that_is_away_ends_nothing(self, slurm_hub: SlurmHub) -> None:
        run = slurm_hub.script("import time; print('here', flush=True); time.sleep(20)")
        slurm_hub.starts(run)
        slurm_hub.slurm.wait_for_saved_state()
        slurm_hub.slurm.kill_controller()
        try:
            eventually(lambda: "does not answer" in slurm_hub.trouble(), PATIENCE_S, "the trouble is noted")
            slurm_hub.completes(run)
        finally:
            slurm_hub.slurm.start_controller()
        eventually(slurm_hub.slurm.is_up, PATIENCE_S, "the controller is back")
        eventually(lambda: not slurm_hub.trouble(), PATIENCE_S, "the trouble is over")
        slurm_hub.slurm.wait_until_idle()

    def test_many_runs_for_a_controller_that_is_away_hold_up_no_other_cluster(
        self, slurm_hub: SlurmHub
    ) -> None:
        slurm_hub.completes(slurm_hub.script(ALONE))
        slurm_hub.slurm.wait_for_saved_state()
        slurm_hub.slurm.kill_controller()
        try:
            waiting = [slurm_hub.script(ALONE) for _ in range(8)]
            slurm_hub.waits(waiting[0], "does not answer")
            # Each call of sbatch takes nine seconds now.
            own = slurm_hub.runs.script(ALONE, resources={"cluster": "local"})
            assert slurm_hub.runs.ended(own, seconds=40)["state"] == "Completed"
        finally:
            slurm_hub.slurm.start_controller()
        for run in waiting:
            slurm_hub.completes(run)
        slurm_hub.slurm.wait_until_idle()

    def test_a_worker_that_is_killed_loses_nothing(self, slurm_hub: SlurmHub) -> None:
        run = slurm_hub.script(ALONE)
        slurm_hub.hub.kill("worker", wait=False)
        slurm_hub.completes(run)
        slurm_hub.hub.kill("web")
        later = slurm_hub.script(ALONE)
        slurm_hub.completes(later)


class TestClaims:
    @pytest.mark.parametrize("code", ["", "tha_1_x", "thj_abc", "tha_1_" + "A" * 43])
    def test_a_code_that_the_hub_has_not_made_counts_nothing(self, slurm_hub: SlurmHub, code: str) -> None:
        claim = {"code": code, "job_id": 1, "restart_count": 0, "node": "n1"}
        with slurm_hub.hub.client("") as nobody:
            answer = nobody.post("/api/v1/node/allocations/", json=claim)
        assert answer.status_code == httpx.codes.FORBIDDEN
        assert answer.json()["errors"][0]["field"] == "code"

    def test_a_code_counts_once_and_only_for_its_own_running_job(self, slurm_hub: SlurmHub) -> None:
        run = slurm_hub.script(WAIT)
        slurm_hub.starts(run)
        job = int(slurm_hub.job(run))
        code = _code(slurm_hub, run)
        claim = {"code": code, "job_id": job, "restart_count": 0, "node": "n1"}
        with slurm_hub.hub.client("") as nobody:

            def refusal(**changes: object) -> str:
                answer = nobody.post("/api/v1/node/allocations/", json={**claim, **changes})
                assert answer.status_code == httpx.codes.FORBIDDEN, answer.text
                return str(answer.json()["errors"][0]["message"])

            assert "has used this code already" in refusal()
            assert "on other nodes" in refusal(node="n2")
            assert "not for 99" in refusal(job_id=99)
            slurm_hub.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
            slurm_hub.ended(run)
            eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "its job ends")
            assert refusal()


def _nodes(slurm_hub: SlurmHub) -> list[dict[str, Any]]:
    return [node for node in slurm_hub.runs.get("/nodes/") if node["cluster"] == CLUSTER]


def _code(slurm_hub: SlurmHub, run: str) -> str:
    return str(
        slurm_hub.evaluate(
            f"claim_code(Allocation.objects.get(holder={run!r}).pk)",
            "from clusters.allocations.claim_codes import claim_code",
        )
    )
