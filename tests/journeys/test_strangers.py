"""Over real ports: somebody without membership gets nothing from pages, API and sockets; a viewer only
looks."""

from __future__ import annotations

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.hub import Hub
from tests.journeys.runs import Runs, example_spec

pytestmark = pytest.mark.slow
SIGN_IN = """
from importlib import import_module
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from tests.people import make_person
from workspaces.states import Role
person = make_person({name!r}, {role})
session = import_module(settings.SESSION_ENGINE).SessionStore()
session[SESSION_KEY] = str(person.pk)
session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
session[HASH_SESSION_KEY] = person.get_session_auth_hash()
session.create()
print(session.session_key)
"""


def browser_of(hub: Hub, name: str, role: str) -> httpx.Client:
    key = hub.manage("shell", "-c", SIGN_IN.format(name=name, role=role)).stdout.split()[-1]
    return hub.client("", cookies={hub.cookie("sessionid"): key})


@pytest.fixture(scope="module")
def run(hub: Hub) -> dict[str, object]:
    runs = Runs(hub)
    return runs.ended(runs.submit(example_spec("hello")))


def everything_of(run: dict[str, object]) -> list[str]:
    inside = f"/api/v1/runs/{run['id']}"
    return [
        f"/runs/{run['number']}/", "/runs/", "/clusters/", "/models/", "/runs/new/", "/",
        f"{inside}/", f"{inside}/events/", f"{inside}/logs/70_driver_log.txt", f"{inside}/outputs/model.json",
        "/api/v1/runs/", "/api/v1/nodes/", "/api/v1/models/", f"/api/v1/snapshots/{'0' * 64}",
    ]  # fmt: skip


def test_a_stranger_learns_nothing(hub: Hub, run: dict[str, object]) -> None:
    with browser_of(hub, "stan", "None") as stranger:
        told = {path: stranger.get(path) for path in everything_of(run)}
    assert {
        path: answer.status_code for path, answer in told.items() if answer.status_code not in (401, 403, 404)
    } == {}
    assert not [path for path, answer in told.items() if "hello" in answer.text.lower()]


def test_nobody_is_asked_to_sign_in_on_pages_and_refused_elsewhere(hub: Hub, run: dict[str, object]) -> None:
    with hub.client("") as nobody:
        for path in everything_of(run):
            answer = nobody.get(path)
            assert answer.status_code in ((401, 404) if path.startswith("/api/") else (302,)), path


@pytest.mark.parametrize(("name", "role"), [("stan", "None"), ("nobody", "")])
def test_sockets_of_a_run_are_closed_to_outsiders(
    hub: Hub, run: dict[str, object], name: str, role: str
) -> None:
    headers = {"Origin": hub.url}
    if role:
        headers["Cookie"] = (
            f"{hub.cookie('sessionid')}={browser_of(hub, name, role).cookies[hub.cookie('sessionid')]}"
        )
    for path in (f"/ws/runs/{run['id']}/", "/ws/runs/", "/ws/nodes/"):
        with (
            pytest.raises(InvalidStatus),
            connect(f"{hub.url.replace('http', 'ws', 1)}{path}", additional_headers=headers),
        ):
            pass


def test_a_viewer_looks_but_does_not_act(hub: Hub, run: dict[str, object]) -> None:
    with browser_of(hub, "vera", "Role.VIEWER") as viewer:
        assert viewer.get(f"/runs/{run['number']}/").status_code == httpx.codes.OK
        assert viewer.get(f"/api/v1/runs/{run['id']}/logs/70_driver_log.txt").status_code == httpx.codes.OK
        assert viewer.get("/runs/new/").status_code == httpx.codes.FORBIDDEN
        viewer.get("/settings/")
        token = viewer.cookies[hub.cookie("csrftoken")]
        headers = {"X-CSRFToken": token, "Origin": hub.url}
        refused = viewer.post("/api/v1/runs/", json=example_spec("hello"), headers=headers)
        assert refused.status_code == httpx.codes.FORBIDDEN
        assert "contributor" in refused.json()["detail"]
        assert (
            viewer.delete(f"/api/v1/runs/{run['id']}/", headers=headers).status_code == httpx.codes.FORBIDDEN
        )
