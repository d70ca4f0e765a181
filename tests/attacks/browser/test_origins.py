"""Row "CSRF, origins" of what the review tried and found held: a foreign page changes nothing with a person's
session."""

from __future__ import annotations

import httpx
import pytest
from pytest_django import Settings
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from live.origins import same_origin
from tests.hub import Hub
from tests.signing_in import page_client

HOST = "hub.example:8000"
FOREIGN = [
    "null", "http://evil.example", "http://hub.example", "http://hub.example:8001",
    "http://hub.example:8000.evil.example",
    "http://hub.example.evil.example:8000", "http://evil.example/hub.example:8000",
    "http://user@hub.example:8000",
    "http://hub.example:8000@evil.example", "http://hub.example:8000/", "file://", "http://",
    "hub.example:8000", "ws://[", "",
]  # fmt: skip
"""Origins that no page of the hub at HOST has; browsers send some of them, and a program may send any."""
WRITES = [
    ("POST", "/api/v1/runs/"), ("POST", "/runs/1/cancel/"), ("POST", "/sign-out/"),
    ("POST", "/settings/tokens/"),
    ("POST", "/api/2.0/mlflow/runs/create"), ("POST", "/api/2.0/mlflow/runs/log-batch"),
    ("POST", "/api/2.0/mlflow/registered-models/create"), ("PUT", "/api/2.0/mlflow-artifacts/artifacts/0/x"),
    ("DELETE", "/api/2.0/mlflow-artifacts/artifacts/0/x"), ("PUT", f"/api/v1/uploads/{'0' * 64}"),
    ("POST", "/api/v1/snapshots/"), ("DELETE", "/api/v1/runs/1/"),
]  # fmt: skip
REFUSED = (401, 403, 415)
"""Or a body of the wrong kind, of which nothing is read."""
SOCKETS = ["/ws/runs/", f"/ws/runs/{'0' * 32}/", "/ws/nodes/", "/ws/telemetry/?nodes=a", "/ws/queue/"]


@pytest.fixture(scope="module")
def person(hub: Hub) -> httpx.Client:
    return page_client(hub)


def scope(origin: str, host: str = HOST) -> dict[str, object]:
    return {"headers": [(b"host", host.encode()), (b"origin", origin.encode())]}


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_foreign_origin_is_not_ours(origin: str) -> None:
    assert not same_origin(scope(origin))


@pytest.mark.parametrize(("origin", "host"), [
    ("http://hub.example:8000", HOST), ("http://hub.example", "hub.example"),
    ("https://hub.example", "hub.example:443"),
    ("https://[::1]:8000", "[::1]:8000"),
])  # fmt: skip
def test_the_host_that_was_asked_is_ours(origin: str, host: str) -> None:
    assert same_origin(scope(origin, host))


def test_plain_http_is_foreign_to_a_hub_that_people_reach_by_tls(settings: Settings) -> None:
    settings.PUBLIC_URL = "https://hub.example"
    assert same_origin(scope("https://hub.example", "hub.example"))
    assert not same_origin(scope("http://hub.example", "hub.example"))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "address"), WRITES)
def test_a_session_writes_for_no_foreign_page(
    method: str, address: str, person: httpx.Client, hub: Hub
) -> None:
    own = f"127.0.0.1:{hub.port}"
    for origin in (
        origin.replace("hub.example:8000", own).replace("hub.example", "127.0.0.1") for origin in FOREIGN
    ):
        headers = (
            {"Origin": origin, "Content-Type": "application/json"}
            if origin
            else {"Content-Type": "application/json"}
        )
        answer = person.request(method, address, content=b"{}", headers=headers)
        assert answer.status_code in REFUSED, f"{origin}: {answer.status_code} {answer.text[:100]}"
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert person.get("/runs/").status_code == httpx.codes.OK, "still signed in"


@pytest.mark.slow
@pytest.mark.parametrize("address", SOCKETS)
def test_a_session_opens_no_socket_for_a_foreign_page(address: str, person: httpx.Client, hub: Hub) -> None:
    session = f"{hub.cookie('sessionid')}={person.cookies[hub.cookie('sessionid')]}"
    own = f"127.0.0.1:{hub.port}"
    for origin in (
        origin.replace("hub.example:8000", own).replace("hub.example", "127.0.0.1") for origin in FOREIGN
    ):
        headers = {"Cookie": session, **({"Origin": origin} if origin else {})}
        with pytest.raises(InvalidStatus), connect(f"ws://{own}{address}", additional_headers=headers):
            pass


@pytest.mark.slow
def test_a_broken_token_does_not_get_a_foreign_page_past_the_check_of_origins(
    person: httpx.Client, hub: Hub
) -> None:
    session = f"{hub.cookie('sessionid')}={person.cookies[hub.cookie('sessionid')]}"
    for junk in ("Bearer", "Bearer ", "Basic YTpi", "x", "bearer x"):
        headers = {"Cookie": session, "Origin": "http://evil.example", "Authorization": junk}
        with (
            pytest.raises(InvalidStatus),
            connect(f"ws://127.0.0.1:{hub.port}/ws/runs/", additional_headers=headers),
        ):
            pass
