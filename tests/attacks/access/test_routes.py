"""Every route of the hub, called by every kind of caller who must be refused, and by the weakest who must get
in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from tests.attacks.access import asking
from tests.attacks.access.routes import HubRoute, all_routes
from tests.attacks.access.world import World, build
from trainhub.asgi import application

TABLE = Path(__file__).with_name("routes.txt")
ROLES = ("viewer", "contributor", "owner", "operator")
PROGRAMS = ("wrong", "node", "job")
"""Holders of a token that is no person's."""


@dataclass(frozen=True)
class Rule:
    """One method of one route. `extra`: programs that get in besides."""

    route: HubRoute
    method: str
    level: str
    extra: tuple[str, ...]

    def refused(self) -> list[str]:
        """Every caller who must not get in."""
        has_programs = self.route.kind != "django" or self.route.path.startswith("/api/v1/")
        callers = ["nobody", *(PROGRAMS if has_programs else ()), "stranger", "outsider", *ROLES]
        return [caller for caller in callers if caller not in self._permitted()]

    def weakest(self) -> str | None:
        """Whoever may least and must get in all the same."""
        permitted = self._permitted()
        return permitted[0] if permitted else None

    def _permitted(self) -> list[str]:
        base = self.level.removeprefix("any-")
        if base in ROLES:
            outsider = ["outsider"] if self.level.startswith("any-") else []
            return [*ROLES[ROLES.index(base) :], *outsider, *self.extra]
        everybody = ["nobody", *PROGRAMS, "stranger", "outsider", *ROLES]
        people = ["stranger", "outsider", *ROLES]
        named = {
            "public": everybody,
            "person": people,
            "self": ["contributor"],
            "node": ["node"],
            "order": ["order"],
            "closed": [],
            "ticket": [],
        }
        return [*named[base], *self.extra]


def table() -> dict[str, str]:
    """Route -> its methods with their levels, as written in routes.txt."""
    lines = [
        line.split(None, 2) for line in TABLE.read_text().splitlines() if line and not line.startswith("#")
    ]
    return {f"{kind} {path}": rest.strip() for kind, path, rest in lines}


def rules(kind: str) -> Iterator[Rule]:
    rows = table()
    for route in all_routes():
        if route.kind == kind and str(route) in rows:
            for cell in rows[str(route)].split(", "):
                method, _, level = cell.partition(" ")
                name, *extra = level.split("+")
                yield Rule(route, method, name, tuple(extra))


def test_every_route_has_its_row_and_every_row_its_route() -> None:
    routes, rows = {str(route) for route in all_routes()}, set(table())
    missing, stale = sorted(routes - rows), sorted(rows - routes)
    assert not missing, f"write down in {TABLE.name} who may call these"
    assert not stale, f"{TABLE.name} names what is no route any more"


def test_methods_of_classes_are_all_written_down() -> None:
    rows = table()
    missing = [
        f"{method} {route}"
        for route in all_routes()
        for method in route.methods
        if (route.kind == "raw" or route.path.startswith("/api/v1/"))
        and f"{method} " not in f"{rows.get(str(route), '')} "
    ]
    assert not missing


@pytest.mark.django_db
@pytest.mark.usefixtures("valkey")
def test_pages_and_api_views() -> None:
    world = build()
    wrong = []
    for rule in rules("django"):
        for caller in rule.refused():
            if asking.django_passes(world, rule.route.path, rule.method, caller):
                wrong.append(f"{rule.method} {rule.route.path} lets {caller} in")
        weakest = rule.weakest()
        if weakest and asking.django_passes(world, rule.route.path, rule.method, weakest) is not True:
            wrong.append(f"{rule.method} {rule.route.path} refuses {weakest}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("valkey")
async def test_raw_routes() -> None:
    world: World = await sync_to_async(build)()
    before = await sync_to_async(_rows)()
    # Who is refused asks first, about everything; what a permitted caller deletes comes last.
    ordered = sorted(rules("raw"), key=_destruction)
    wrong = []
    async with _client() as client:
        for rule in ordered:
            for caller in rule.refused():
                if await asking.raw_passes(client, world, rule.route.path, rule.method, caller):
                    wrong.append(f"{rule.method} {rule.route.path} lets {caller} in")
        assert await sync_to_async(_rows)() == before, "a refused request has changed something"
        for rule in ordered:
            # What a first address has deleted, its twin for MLflow's own pages cannot delete again.
            is_twin = rule.route.path.startswith("/ajax-api/") and rule.method == "DELETE"
            weakest = None if is_twin else rule.weakest()
            if (
                weakest
                and await asking.raw_passes(client, world, rule.route.path, rule.method, weakest) is not True
            ):
                wrong.append(f"{rule.method} {rule.route.path} refuses {weakest}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("valkey")
@pytest.mark.parametrize("rule", list(rules("socket")), ids=lambda rule: rule.route.path)
async def test_sockets(rule: Rule) -> None:
    world: World = await sync_to_async(build)()
    path = world.fill(rule.route.path)
    assert [caller for caller in rule.refused() if await asking.socket_passes(world, path, caller)] == []
    weakest = rule.weakest()
    assert weakest is not None
    assert await asking.socket_passes(world, path, weakest)


def _destruction(rule: Rule) -> int:
    """How much is gone afterwards: nothing, a tag, or an object that others need."""
    if "delete" not in f"{rule.route.path} {rule.method}".lower():
        return 0
    return 1 if "tag" in rule.route.path else 2


def _client() -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://testserver")


def _rows() -> str:
    """How many rows each table has."""
    with connection.cursor() as cursor:
        counts = {}
        for name in connection.introspection.table_names(cursor):
            quoted_name = connection.ops.quote_name(name)
            cursor.execute(f"SELECT count(*) FROM {quoted_name}")  # noqa: S608 - our own tables
            counts[name] = cursor.fetchone()[0]
    return json.dumps(counts, sort_keys=True)
