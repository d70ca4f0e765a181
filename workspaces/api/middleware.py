from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from workspaces.api.problems import problem
from workspaces.object_store.errors import StoreUnavailable

SENTENCES = {
    403: "This request was refused: {reason}.",
    404: "This does not exist, or you may not see it.",
    500: "TrainHub itself failed; the operator finds the traceback in the server log.",
}


class ApiProblems:
    """Replaces error pages of Django below /api/ (an unknown address, a broken request) by problem
    details."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return _as_problem(request, self._get_response(request))

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answers a page whose stored file cannot be read now."""
        if not isinstance(error, StoreUnavailable):
            return None
        page = render(request, "503.html", {"reason": str(error)}, status=503)
        page["Retry-After"] = "10"
        return page


def _as_problem(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if (
        response.status_code == 301
        and request.path.startswith("/api/")
        and request.method not in ("GET", "HEAD")
    ):
        # Clients follow by GET, so that a POST would quietly become a look at the list.
        return problem(404, f"Addresses of this API end with a slash: {request.path}/")
    is_page = response.headers.get("Content-Type", "").startswith("text/html")
    if not (request.path.startswith("/api/") and response.status_code >= 400 and is_page):
        return response
    sentence = SENTENCES.get(response.status_code, "This request was refused: {reason}.")
    return problem(
        response.status_code, sentence.format(reason=getattr(response, "reason_phrase", "").lower())
    )
