"""What people and programs are told while the database is away or accepts no changes."""

from __future__ import annotations

import logging

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from workspaces.database.outages import AWAY, is_away, outage_of
from workspaces.http.problems import problem_response

log = logging.getLogger(__name__)
TITLE = "The database does not work"
REST = "Runs go on, and nothing is lost that was saved. Try again in a few seconds."
RETRY_AFTER_S = 5
_ANSWERED = ("/healthz", "/static/", "/api/v1/node/report/")


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
        is_refused = is_away() and scope["type"] == "http" and not scope["path"].startswith(_ANSWERED)
        await (_raw_answer(scope["path"], AWAY) if is_refused else self._app)(scope, receive, send)


def _raw_answer(path: str, sentence: str) -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_S), "Cache-Control": "no-store"}
    if path.startswith(("/api/", "/v2/")):
        return problem_response(503, TITLE, f"{sentence} {REST}", headers=headers)
    page = render_to_string("503.html", {"sentence": sentence, "rest": REST})
    return HTMLResponse(page, 503, headers)
