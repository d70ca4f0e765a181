"""A framework that only its folder describes, on a whole hub: wizard, API, launch, lists and filter."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.hub import Hub
from tests.journeys.runs import Runs
from tests.signing_in import page_client
from trainhub_launch.frameworks import FRAMEWORKS

pytestmark = pytest.mark.slow
SETTINGS = "tests.frameworks.settings"
RING = {"type": "ring", "member_count": 3, "direction": "backward"}
SCRIPT = """
import os, sys
print('member', os.environ['RING_RANK'], 'of', os.environ['RING_SIZE'], 'passes to', sys.argv[1])
"""


@pytest.fixture(scope="module")
def ring_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    own = Hub(tmp_path_factory.mktemp("ring") / "data", DJANGO_SETTINGS_MODULE=SETTINGS)
    try:
        yield own.start()
    finally:
        own.stop()


@pytest.fixture(scope="module")
def runs(ring_hub: Hub) -> Runs:
    return Runs(ring_hub)


@pytest.fixture(scope="module")
def page(ring_hub: Hub) -> Iterator[httpx.Client]:
    client = page_client(ring_hub)
    client.follow_redirects = True
    yield client
    client.close()


@pytest.fixture(scope="module")
def finished(runs: Runs) -> dict[str, Any]:
    """A ring that has run to its end."""
    return runs.ended(runs.script(SCRIPT, arguments=["$RING_NEXT"], distribution=RING))


def post(hub: Hub, page: httpx.Client, path: str, **typed: str) -> httpx.Response:
    token = page.cookies[hub.cookie("csrftoken")]
    answer = page.post(path, data={"csrfmiddlewaretoken": token, **typed}, headers={"Referer": hub.url})
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer


def as_text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_the_wizard_shows_its_card_and_its_fields(ring_hub: Hub, page: httpx.Client) -> None:
    draft = str(post(ring_hub, page, "/runs/new/blank/").url).rpartition("source/")[0]
    step = page.get(f"{draft}distribution/").text
    assert (
        "Ring of processes TrainHub starts every member of the ring and tells it which one comes next."
        in as_text(step)
    )
    assert "RING_RANK RING_SIZE RING_NEXT MASTER_ADDR MASTER_PORT" in as_text(step)
    (members,) = re.findall(r'<input[^>]*name="ring_member_count"[^>]*>', step)
    assert 'value="3"' in members
    assert re.search(r'<select[^>]*name="ring_direction".*?Forward.*?Backward.*?</select>', step, re.DOTALL)
    typed = {"kind": "ring", "ring_member_count": "1", "ring_direction": "forward", "ring_node_count": "1"}
    preview = post(ring_hub, page, f"{draft}distribution/preview/", **typed).text
    assert "A ring of one member is no ring; give at least 2." in as_text(preview)
    wrong = post(
        ring_hub, page, f"{draft}distribution/preview/", **typed | {"ring_member_count": "many"}
    ).text
    assert "Members: must be a whole number between 1 and 64." in as_text(wrong)


def test_the_openapi_schema_has_it(runs: Runs) -> None:
    schema = (
        runs.client.get("/api/v1/schema/", headers={"Accept": "application/vnd.oai.openapi+json"})
        .raise_for_status()
        .json()
    )
    body = schema["paths"]["/api/v1/runs/"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    kinds = body["properties"]["distribution"]["anyOf"]
    (described,) = [
        kind for kind in kinds if kind.get("properties", {}).get("type", {}).get("enum") == ["ring"]
    ]
    assert described["properties"]["direction"] == {"type": "string", "enum": ["forward", "backward"]}
    assert len(kinds) == len(FRAMEWORKS) + 1


def test_the_api_previews_it(runs: Runs) -> None:
    source = {"type": "snapshot", "id": runs.snapshot(main_py=SCRIPT)}
    spec = {"source": source, "script": "main.py", "arguments": ["$RING_NEXT"], "distribution": RING}
    preview = runs.client.post("/api/v1/runs/preview/", json=spec).raise_for_status().json()
    assert [item for item in preview["findings"] if item["level"] == "error"] == []
    assert preview["plan"]["framework"] == "ring"
    (command,) = preview["plan"]["commands"]
    assert [process["env"]["RING_NEXT"] for process in command["processes"]] == ["2", "0", "1"]


def test_an_agent_runs_it(runs: Runs, finished: dict[str, Any]) -> None:
    assert finished["state"] == "Completed", finished["sentence"]
    assert finished["framework"] == "ring"
    logs = [f"70_driver_log_{rank}.txt" for rank in range(3)]
    assert [name for name in runs.logs(finished["id"]) if name.startswith("70_")] == logs
    for rank, name in enumerate(logs):
        assert (
            runs.log(finished["id"], name).decode().splitlines()[-1]
            == f"member {rank} of 3 passes to {(rank - 1) % 3}"
        )


def test_lists_and_the_page_of_the_run_name_it(page: httpx.Client, finished: dict[str, Any]) -> None:
    for path in ("/runs/?column=framework", f"/runs/{finished['number']}/"):
        answer = page.get(path)
        assert answer.status_code == httpx.codes.OK, path
        assert "Ring ×3" in as_text(answer.text), path


def test_a_filter_finds_it(runs: Runs, finished: dict[str, Any]) -> None:
    runs.ended(runs.script("print('alone')"))
    found = runs.get("/runs/?filter=framework = 'ring'")["results"]
    assert [run["id"] for run in found] == [finished["id"]]
    others = runs.get("/runs/?filter=framework != 'ring'")["results"]
    assert finished["id"] not in [run["id"] for run in others]
    assert {run["framework"] for run in others} == {"single"}


def test_a_clone_starts_from_it(ring_hub: Hub, page: httpx.Client, finished: dict[str, Any]) -> None:
    draft = str(post(ring_hub, page, f"/runs/{finished['number']}/clone/").url)
    step = page.get(re.sub(r"[a-z]+/$", "distribution/", draft)).text
    assert re.search(r'<input[^>]*value="ring" checked', step)


def test_a_hub_that_no_longer_has_it_still_shows_its_runs(
    ring_hub: Hub, runs: Runs, finished: dict[str, Any]
) -> None:
    """The last one here: the hub starts again without it."""
    ring_hub.stop()
    del ring_hub.settings["DJANGO_SETTINGS_MODULE"]
    page = page_client(ring_hub.start())
    for path in ("/runs/?column=framework", f"/runs/{finished['number']}/"):
        assert re.search(r"\bring\b", as_text(page.get(path).raise_for_status().text)), path
    page.close()
    assert runs.detail(finished["id"])["framework"] == "ring"
    spec = {"source": {"type": "example", "name": "hello"}, "distribution": RING}
    answer = runs.client.post("/api/v1/runs/preview/", json=spec)
    assert answer.is_client_error
    assert "'ring' is not known" in answer.text
