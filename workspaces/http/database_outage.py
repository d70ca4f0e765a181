"""What people and programs are told while the database is away or accepts no changes.

The web server's background loop tries the database once a second while it is away (`background_loop`). In
that time requests are refused at once: each would otherwise wait for a connection for 20 s, in a thread that
another one needs."""

from __future__ import annotations

import logging
from typing import Any

import psycopg
from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from psycopg_pool import PoolTimeout
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from workspaces.http.problems import problem_response

log = logging.getLogger(__name__)
TITLE = "The database does not work"
RETRY_AFTER_S = 5
CONNECT_TIMEOUT_S = 10
AWAY = "The hub cannot reach its database at the moment."
NO_CONNECTION = "The hub's database has no connection left."
READ_ONLY = "The hub's database accepts no changes at the moment."
DISK_FULL = "The disk of the hub's database is full."
BUSY = "The hub's database is busy with another change."
REST = "Runs go on, and nothing is lost that was saved. Try again in a few seconds."
# Of SQLSTATE: connection exceptions, and a server that ends or starts.
_AWAY_STATES = ("08", "57P")
_STATES = {"53300": NO_CONNECTION, "53100": DISK_FULL, "25006": READ_ONLY}
_SQLITE = {"readonly database": READ_ONLY, "is full": DISK_FULL, "is locked": BUSY}
_ANSWERED = ("/healthz", "/static/", "/api/v1/node/report/")
_outages: list[str] = []


class DatabaseAway(OperationalError):
    """Raised instead of waiting for a database that is away."""


def outage_of(error: BaseException | None) -> str:
    """Returns the sentence for an error that ends by itself or by the operator's hand; "" for a fault of the
    code."""
    if isinstance(error, DatabaseAway):
        return AWAY
    if not isinstance(error, DatabaseError):
        return ""
    cause = error.__cause__
    state = (cause.sqlstate if isinstance(cause, psycopg.Error) else "") or ""
    if isinstance(cause, PoolTimeout):
        return NO_CONNECTION if not is_away() else AWAY
    if state in _STATES:
        return _STATES[state]
    is_of_connection = isinstance(error, OperationalError | InterfaceError) and (
        state.startswith(_AWAY_STATES) if state else isinstance(cause, psycopg.Error)
    )
    if is_of_connection:
        return AWAY
    return next((sentence for words, sentence in _SQLITE.items() if words in str(error)), "")


def is_away() -> bool:
    return bool(_outages)


def note_away() -> None:
    """From now on requests are refused until `recover` has reached the database."""
    if not _outages:
        _outages.append(AWAY)


def recover() -> bool:
    """Tries to reach a database that is away; returns whether it answers. The connections of before are
    broken, so all are made anew."""
    if not _outages:
        return True
    if connection_failure():
        return False
    database: Any = connection  # of PostgreSQL: only there `note_away` is called
    database.close_pool()
    _outages.clear()
    return True


def connection_failure() -> str:
    """Returns why PostgreSQL cannot be reached now, past the pool, which would wait; "" if it can."""
    database: Any = connection
    if connection.vendor != "postgresql":
        return ""
    try:
        psycopg.connect(**{"connect_timeout": CONNECT_TIMEOUT_S, **database.get_connection_params()}).close()
    except psycopg.Error as error:
        return " ".join(str(error).split()) or type(error).__name__
    return ""


def refuse_if_away() -> None:
    """Raises DatabaseAway while the database is away."""
    if _outages:
        raise DatabaseAway(AWAY)


def outage_response(request: HttpRequest, sentence: str) -> HttpResponse:
    """Returns the answer of Django: problem details below /api/, else a page."""
    answer = _raw_answer(request.path, sentence)
    response = HttpResponse(answer.body, status=answer.status_code, headers=dict(answer.headers))
    # Django would log a traceback for each request; the background loop logs the outage once.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


async def raw_outage(_: Request, error: Exception) -> Response:
    """Answers errors of the database on raw routes; raises those that are a fault of the code again."""
    sentence = outage_of(error)
    if not sentence:
        raise error
    log.warning("A request was refused: %s", sentence)
    return _raw_answer("/api/", sentence)


class OutageGate:
    """Refuses requests while the database is away. Reports of nodes that bring only numbers are answered
    without it, and keep the nodes from seeming silent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_refused = _outages and scope["type"] == "http" and not scope["path"].startswith(_ANSWERED)
        await (_raw_answer(scope["path"], AWAY) if is_refused else self._app)(scope, receive, send)


def _raw_answer(path: str, sentence: str) -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_S), "Cache-Control": "no-store"}
    if path.startswith(("/api/", "/v2/")):
        return problem_response(503, TITLE, f"{sentence} {REST}", headers=headers)
    page = render_to_string("503.html", {"sentence": sentence, "rest": REST})
    return HTMLResponse(page, 503, headers)
