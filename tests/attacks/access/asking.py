"""Asks a route as one caller, and tells whether the hub let the caller in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
from django.db import transaction
from django.test import Client

from tests.attacks.access.routes import TRACKING_ROOT
from tests.attacks.access.world import World
from tests.live.sockets import Watcher
from tracking.mlflow.routes import ROOTS
from trainhub.asgi import application

NOT_OFFERED = 405
REFUSALS = (401, 403, 404)
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def django_passes(world: World, path: str, method: str, caller: str) -> bool | None:
    """Whether a page or API view lets `caller` in; None where it does not offer the method. Leaves nothing
    changed."""
    is_api = path.startswith("/api/v1/")
    with _undone():
        client = _program(world, caller) if is_api else _browser(world, caller)
        response = client.generic(
            method, world.fill(path), b"{}" if is_api else b"", JSON if is_api else FORM
        )
        if response.status_code == NOT_OFFERED:
            return None
        to_sign_in = response.status_code == 302 and response.headers["Location"].startswith(
            "/sign-in/?next="
        )
        return response.status_code not in REFUSALS and not to_sign_in


def _program(world: World, caller: str) -> Client:
    token = world.tokens.get(caller)
    return Client(
        raise_request_exception=False, headers={"authorization": f"Bearer {token}"} if token else {}
    )


def _browser(world: World, caller: str) -> Client:
    client = Client(raise_request_exception=False)
    if caller in world.people:
        client.force_login(world.people[caller])
    return client


@contextlib.contextmanager
def _undone() -> Iterator[None]:
    """Take back whatever is written to the database inside."""
    with contextlib.suppress(_Undo), transaction.atomic():
        yield
        raise _Undo


class _Undo(Exception):
    pass


async def raw_passes(
    client: httpx.AsyncClient, world: World, path: str, method: str, caller: str
) -> bool | None:
    """The same of a route in front of Django. What a permitted caller changes, stays changed."""
    token = world.tokens.get(caller)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = world.fill(path.replace(TRACKING_ROOT, ROOTS[0]))
    fields = _fields(world)
    if path.endswith("experiments/restore"):
        fields["experiment_id"] = str(world.values["deleted_experiment"])
    if path.startswith("/api/v1/"):
        fields = {}  # its addresses name everything by themselves
    named: Mapping[str, Any] = {"params": fields} if method in ("GET", "HEAD") else {"json": fields}
    response = await client.request(method, url, headers=headers, **named)
    if response.status_code == NOT_OFFERED:
        return None
    return response.status_code not in REFUSALS


async def socket_passes(world: World, path: str, caller: str) -> bool:
    """Whether the hub accepts a WebSocket."""
    headers = [(b"host", b"testserver"), (b"origin", b"http://testserver")]
    if token := world.tokens.get(caller):
        headers.append((b"authorization", f"Bearer {token}".encode()))
    watcher = Watcher(application, path, headers, "nodes=alpha")
    if not await watcher.opens():
        return False
    await watcher.closes()
    return True


def _fields(world: World) -> dict[str, str]:
    """Names existing objects in every way in which MLflow's calls name them."""
    values = world.values
    return {
        "run_id": values["run"],
        "run_uuid": values["run"],
        "experiment_id": str(values["experiment"]),
        "name": "birds",
        "version": "1",
        "alias": "champion",
        "metric_key": "loss",
        "key": "note",
        "value": "1",
        "path": "model.pt",
    }
