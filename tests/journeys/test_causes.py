"""A rank raises while another waits for it: the cause leads page and API before the run has even ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import Hub, eventually
from tests.journeys.runs import Runs
from tests.journeys.test_endings import page_of

pytestmark = [pytest.mark.slow, pytest.mark.frameworks]
TWO = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 1}
RAISING = """
import os, signal, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 1:
    raise ValueError("the labels of shard 1 are empty")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
{wait}
"""
BLOCKED = RAISING.format(wait="dist.all_reduce(torch.ones(1))")
DEAF = RAISING.format(wait="time.sleep(600)")


@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory, frameworks_python: str) -> Iterator[Runs]:
    """Runs on a hub whose node's own interpreter has torch."""
    own = Hub(tmp_path_factory.mktemp("causes") / "data", TRAINHUB_NODE_PYTHON=frameworks_python)
    try:
        yield Runs(own.start())
    finally:
        own.stop()


def test_api_and_page_lead_with_the_exception_while_the_gang_is_still_being_ended(
    torch: Runs,
) -> None:
    run = torch.script(DEAF, distribution=TWO, limits={"grace_s": 20})
    found = eventually(lambda: torch.detail(run)["cause"], 60, "the API names the cause")
    assert (found["rank"], found["exception"]) == (1, "ValueError: the labels of shard 1 are empty")
    detail = torch.detail(run)
    assert detail["state"] not in ("Failed", "Completed"), "rank 0 does not listen, and has 20 s of grace"
    page = page_of(torch, detail["number"])
    assert "the labels of shard 1 are empty" in page[page.index("th-cause") : page.index("th-tabs")]
    ended = torch.ended(run, 60)
    assert (ended["state"], ended["cause"]["rank"]) == ("Failed", 1)

    def others() -> list[tuple[int, str]]:
        return [(other["rank"], other["why"]) for other in torch.detail(run)["cause"]["others"]]

    # The cause is read again right after the transaction that ends the run.
    eventually(lambda: others() == [(0, "ended by TrainHub")], 20, "the cause says how the other rank ended")


def test_a_rank_that_waits_in_an_all_reduce_is_not_taken_for_the_cause(torch: Runs) -> None:
    run = torch.script(BLOCKED, distribution=TWO, limits={"grace_s": 5})
    ended = torch.ended(run, 60)
    assert (ended["cause"]["rank"], ended["cause"]["is_certain"]) == (1, True)
    assert ended["sentence"].startswith("Rank 1 exited with code 1")
    listed = next(item for item in torch.get("/runs/")["results"] if item["id"] == run)
    assert listed["cause_line"].endswith("ValueError: the labels of shard 1 are empty")


def test_submit_ends_with_the_cause_and_the_remedy(torch: Runs, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import flash_attn_of_mine\n")
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"source": {"type": "local", "path": "."}, "script": "train.py"}))
    done = torch.hub.manage("submit", str(spec), "--wait", check=False)
    assert done.returncode == 1
    assert "The cause: Rank 0 on" in done.stderr
    assert "No module named 'flash_attn_of_mine'" in done.stderr
    assert "What to do: Add the package that has flash_attn_of_mine to the environment" in done.stderr
