"""Which errors of a database end by themselves or by the operator's hand, and what is said about each."""

from __future__ import annotations

import sqlite3

import httpx
import psycopg
import pytest
from django.db import DataError, IntegrityError, InternalError, OperationalError, ProgrammingError
from django.test import Client, RequestFactory
from psycopg_pool import PoolClosed, PoolTimeout

from trainhub.asgi import application
from trainhub.views import server_error
from workspaces.database import outages
from workspaces.database.outages import AWAY, BUSY, DISK_FULL, NO_CONNECTION, READ_ONLY, outage_of


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (caused(OperationalError(), psycopg.OperationalError("the connection is lost")), AWAY),
        (caused(OperationalError(), psycopg.errors.AdminShutdown()), AWAY),
        (caused(OperationalError(), psycopg.errors.CannotConnectNow()), AWAY),
        (caused(OperationalError(), PoolTimeout("after 20 s")), NO_CONNECTION),
        (caused(OperationalError(), PoolClosed("as the database is away")), AWAY),
        (caused(OperationalError(), psycopg.errors.TooManyConnections()), NO_CONNECTION),
        (caused(OperationalError(), psycopg.errors.DiskFull()), DISK_FULL),
        (caused(InternalError(), psycopg.errors.ReadOnlySqlTransaction()), READ_ONLY),
        (OperationalError("attempt to write a readonly database"), READ_ONLY),
        (OperationalError("database or disk is full"), DISK_FULL),
        (OperationalError("database is locked"), BUSY),
    ],
)
def test_an_outage_has_a_sentence(error: Exception, sentence: str) -> None:
    assert outage_of(error) == sentence


@pytest.mark.parametrize(
    "error",
    [
        ValueError("database is locked"),
        IntegrityError(),
        caused(ProgrammingError(), psycopg.errors.UndefinedTable()),
        caused(DataError(), psycopg.errors.NumericValueOutOfRange()),
        caused(OperationalError(), psycopg.errors.QueryCanceled()),
        caused(OperationalError("no such table: x"), sqlite3.OperationalError("no such table: x")),
    ],
)
def test_a_fault_of_the_code_is_none(error: Exception) -> None:
    assert outage_of(error) == ""


@pytest.mark.parametrize("path", ["/runs/", "/api/v1/runs/"])
def test_a_view_that_met_an_outage_is_answered_with_the_reason(path: str, rf: RequestFactory) -> None:
    try:
        raise OperationalError("attempt to write a readonly database")
    except OperationalError:
        answer = server_error(rf.get(path))
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert READ_ONLY.encode() in answer.content.replace(b"&#x27;", b"'")
    assert ("json" in answer["Content-Type"]) == path.startswith("/api/")


@pytest.mark.django_db
def test_an_api_view_that_met_an_outage_says_so(client: Client, rf: RequestFactory) -> None:
    from workspaces.api.problems import exception_handler

    answer = exception_handler(OperationalError("database is locked"), {})
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert BUSY.encode() in answer.content.replace(b"\\u0027", b"'")


async def test_nobody_waits_for_a_database_that_is_away() -> None:
    outages.note_away()
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        for path in ("/", "/sign-in/", "/api/v1/runs/", "/api/v1/node/claim/", "/v2/"):
            answer = await client.get(path)
            assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
            assert answer.headers["Retry-After"] == "5"
            assert AWAY in answer.text
        assert "<h1>" in (await client.get("/")).text
        assert (await client.get("/api/v1/runs/")).json()["status"] == httpx.codes.SERVICE_UNAVAILABLE
        assert (await client.get("/healthz")).status_code == httpx.codes.OK
