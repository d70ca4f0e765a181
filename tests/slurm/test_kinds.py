"""What holds for runs on every kind of cluster (clusters/backends/contract.py), on one hub that has both."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from clusters.kinds import AGENT, BACKENDS, SLURM
from tests.hub import eventually
from tests.slurm.hub import CLUSTER, PATIENCE_S, SlurmHub

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.long]
CLUSTERS = {AGENT: "local", SLURM: CLUSTER}
WAIT = "import time; print('here', flush=True); time.sleep(600)"
FAIL = "import sys; print('attempt', flush=True); sys.exit(3)"


def test_no_kind_is_missing_here() -> None:
    assert CLUSTERS.keys() == BACKENDS.keys()


@pytest.fixture(params=CLUSTERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestEveryKind:
    def test_a_run_completes_with_each_byte_of_its_log(self, slurm_hub: SlurmHub, kind: str) -> None:
        run = slurm_hub.script("import sys; sys.stdout.write('a\\r\\nb')", **_on(kind))
        slurm_hub.completes(run)
        assert slurm_hub.runs.log(run) == b"a\r\nb"
        assert _is_free(slurm_hub, run)

    def test_a_rank_that_fails_fails_the_run_after_its_retries(self, slurm_hub: SlurmHub, kind: str) -> None:
        run = slurm_hub.script(FAIL, limits={"retries": 1}, **_on(kind))
        ended = slurm_hub.ended(run)
        assert (ended["state"], ended["attempt"]) == ("Failed", 2)
        assert ended["sentence"].startswith("Rank 0 exited with code 3 on ")
        assert _is_free(slurm_hub, run)

    def test_a_canceled_run_leaves_nothing(self, slurm_hub: SlurmHub, kind: str) -> None:
        run = slurm_hub.script(WAIT, **_on(kind))
        slurm_hub.starts(run)
        slurm_hub.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
        assert slurm_hub.ended(run)["state"] == "Canceled"
        assert _is_free(slurm_hub, run)

    def test_what_no_node_has_is_refused_with_its_field(self, slurm_hub: SlurmHub, kind: str) -> None:
        spec = _spec(slurm_hub, kind, gpus_per_node=63)
        answer = slurm_hub.runs.client.post("/api/v1/runs/", json=spec)
        assert answer.status_code == httpx.codes.BAD_REQUEST
        assert answer.json()["errors"][0]["field"] == "resources.gpus_per_node"

    def test_a_preview_shows_the_plan(self, slurm_hub: SlurmHub, kind: str) -> None:
        answer = slurm_hub.runs.client.post("/api/v1/runs/preview/", json=_spec(slurm_hub, kind))
        (command,) = answer.raise_for_status().json()["plan"]["commands"]
        assert command["node"]
        assert [process["argv"][-1] for process in command["processes"]] == ["main.py"]

    def test_a_drained_cluster_passes_nothing_on(self, slurm_hub: SlurmHub, kind: str) -> None:
        clusters = f"/api/v1/clusters/{CLUSTERS[kind]}"
        slurm_hub.runs.client.post(f"{clusters}/drain/").raise_for_status()
        try:
            run = slurm_hub.script("print('ran')", **_on(kind))
            slurm_hub.waits(run, "drained")
        finally:
            slurm_hub.runs.client.post(f"{clusters}/resume/").raise_for_status()
        slurm_hub.completes(run)


def _on(kind: str) -> dict[str, Any]:
    return {"resources": {"cluster": CLUSTERS[kind]}}


def _spec(slurm_hub: SlurmHub, kind: str, **resources: int) -> dict[str, Any]:
    source = {"type": "snapshot", "id": slurm_hub.runs.snapshot(main_py="print('hello')")}
    return {"source": source, "script": "main.py", "resources": {"cluster": CLUSTERS[kind], **resources}}


def _is_free(slurm_hub: SlurmHub, run: str) -> bool:
    """Waits until nothing is held for the run any more, here or outside."""
    held = (
        f"Lease.objects.filter(holder={run!r}, released_at=None).count() + "
        f"Allocation.objects.filter(holder={run!r}, over_at=None).count()"
    )
    return bool(eventually(lambda: slurm_hub.evaluate(held) == 0, PATIENCE_S, "nothing is held"))
