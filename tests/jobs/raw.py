"""The raw routes as a client sees them: requests over ASGI, tokens in headers, rows that are really
committed."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
import msgpack
from asgiref.sync import sync_to_async
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from clusters.enrolment import node_tokens
from clusters.models import Node
from jobs.byte_routes import routes
from jobs.models import Run
from tests.jobs.builders import Played, launched, node
from tests.people import make_contributor, make_person, make_stranger, make_workspace, principal_of, token_of
from trainhub_launch.report import AttemptFact, LogChunk, Report
from workspaces.access import Principal
from workspaces.states import Role

LOG = "70_driver_log.txt"
Headers = dict[str, str]


def opened(*more: BaseRoute) -> httpx.AsyncClient:
    """`more`: routes besides those of jobs."""
    app = Starlette(routes=[*routes, *more])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://hub:8000")


@sync_to_async
def enrolled(name: str = "alpha") -> tuple[Node, Headers]:
    """A node with its token as headers."""
    made = node(name)
    _, token = node_tokens.enrol_node("local", name)
    return Node.objects.select_related("cluster").get(pk=made.pk), bearing(token)


@sync_to_async
def placed(who: Principal) -> Run:
    return launched(who)


@sync_to_async
def claimed(who: Principal, on: Node) -> Run:
    run = launched(who)
    Played(on).claim(run)
    return run


@sync_to_async
def contributor() -> tuple[Principal, Headers]:
    user = make_contributor()
    return principal_of(user), bearing(token_of(user))


@dataclass(frozen=True)
class Upload:
    """One file on its way up, by pieces."""

    client: httpx.AsyncClient
    url: str
    headers: Headers
    data: bytes

    async def put(self, start: int, end: int) -> httpx.Response:
        span = {"Content-Range": f"bytes {start}-{end - 1}/{len(self.data)}"}
        return await self.client.put(self.url, headers={**self.headers, **span}, content=self.data[start:end])

    async def head(self) -> httpx.Headers:
        return (await self.client.head(self.url, headers=self.headers)).headers


def packed(*attempts: AttemptFact, logs: tuple[LogChunk, ...] = ()) -> bytes:
    living = tuple((fact.run, fact.attempt) for fact in attempts)
    told: bytes = msgpack.packb(Report("test", 1, 0.0, living=living, attempts=attempts, logs=logs).to_wire())
    return told


def bearing(token: str) -> Headers:
    return {"Authorization": f"Bearer {token}"}


def other_principal() -> Principal:
    return principal_of(make_person("otto", Role.CONTRIBUTOR, make_workspace("other")))


def other_token() -> str:
    return token_of(other_principal().user, make_workspace("other"))


def stranger_token() -> str:
    return token_of(make_stranger())
