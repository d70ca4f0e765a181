"""The API for searching all logs of a run."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base import JobsView
from jobs.api.log_serializers import LogSearchSerializer
from jobs.api.run_detail import ATTEMPT
from jobs.logs import log_pattern, log_search, log_store
from jobs.logs.log_search import LogCursor, LogHit, SearchedLog
from jobs.models import Member, Run
from trainhub_launch.errors import SpecError

LIMIT = 100
MAX_LIMIT = 1000
ORDERS = ("time", "rank")
PARAMETERS = [
    OpenApiParameter(
        "q",
        str,
        required=True,
        description="The text or expression to search for. Each line is matched separately.",
    ),
    OpenApiParameter("regex", bool, description="1: `q` is a regular expression in RE2 syntax."),
    OpenApiParameter("case", bool, description="1: the search is case-sensitive."),
    OpenApiParameter(
        "rank",
        str,
        description=(
            "Search only the logs of these ranks, such as 0,3. If `log` is also given, logs that match "
            "either are searched."
        ),
    ),
    OpenApiParameter("log", str, many=True, description="Search only the logs with these names."),
    OpenApiParameter(
        "order",
        str,
        enum=ORDERS,
        description=(
            "The order of the results: `time` by arrival of the lines (the default), `rank` log by log."
        ),
    ),
    OpenApiParameter(
        "limit",
        int,
        description=f"The maximum number of results per page, 1 to {MAX_LIMIT}; {LIMIT} by default.",
    ),
    OpenApiParameter("cursor", str, description="The value of `next` in the previous page."),
    ATTEMPT,
]


class RunLogSearch(JobsView):
    @extend_schema(parameters=PARAMETERS, responses=LogSearchSerializer)
    def get(self, request: Request, run: str) -> Response:
        """A page of the matching lines in all logs of an attempt. A request searches for about one second at
        most, so a page may be short or empty although `next` is set."""
        instance = self.run(request, run)
        attempt = self.attempt(request, instance)
        query = request.query_params
        pattern = log_pattern.compile_pattern(
            query.get("q", ""), regex=_flag(request, "regex"), case=_flag(request, "case")
        )
        order = query.get("order", "time")
        if order not in ORDERS:
            raise SpecError("order", f"must be {' or '.join(ORDERS)}")
        members = list(
            Member.objects.filter(attempt__run=instance, attempt__number=attempt).select_related("node")
        )
        logs = _logs(instance, attempt, members, _ranks(query.getlist("rank")), query.getlist("log"))
        search = log_search.LogSearch(logs, pattern, _limit(request))
        cursor = _decode_cursor(query.get("cursor", ""), logs)
        page = search.by_rank(cursor) if order == "rank" else search.by_time(cursor)
        nodes = {member.log_name: member.node.name for member in members}
        return Response(
            {
                "attempt": attempt,
                "order": order,
                "logs": len(logs),
                "results": [_hit_json(hit, nodes.get(hit.log.name)) for hit in page.hits],
                "next": page.next and _encode_cursor(page.next),
                "searched_bytes": page.searched_bytes,
                "total_bytes": sum(log.size for log in logs),
            }
        )


def _logs(
    run: Run, attempt: int, members: Iterable[Member], ranks: set[int], names: Sequence[str]
) -> list[SearchedLog]:
    """Returns the requested logs that have content, by default all. Raises SpecError for a rank or name that
    does not exist."""
    rank_of = {member.log_name: member.rank for member in members}
    stored = log_store.log_sizes(run.pk, attempt) if attempt else {}
    if unknown := ranks - set(rank_of.values()):
        raise SpecError("rank", f"attempt {attempt} has no rank {min(unknown)}")
    if missing := [name for name in names if name not in stored and name not in rank_of]:
        raise SpecError("log", f"attempt {attempt} has no log {missing[0]!r}")
    is_all = not ranks and not names
    chosen = [name for name in stored if is_all or name in names or rank_of.get(name) in ranks]
    logs = (log_search.load_log(run.pk, attempt, name, rank_of.get(name)) for name in chosen)
    return [log for log in logs if log is not None]


def _hit_json(hit: LogHit, node: str | None) -> dict[str, Any]:
    arrival = hit.arrival
    return {
        "log": hit.log.name,
        "rank": hit.log.rank,
        "node": node,
        "line": hit.line,
        "offset": hit.match.offset,
        "at": datetime.fromtimestamp(arrival.last_ms / 1000, UTC),
        # The arrival of a record spans up to 250 ms, or more in a long log that was thinned out.
        "resolution_s": None if arrival.late else max(0.001, (arrival.last_ms - arrival.first_ms) / 1000),
        "late": arrival.late,
        "text": hit.match.text,
        "spans": hit.match.spans,
    }


def _flag(request: Request, name: str) -> bool:
    text = request.query_params.get(name, "0")
    if text not in ("0", "1", "true", "false"):
        raise SpecError(name, "must be 1 or 0")
    return text in ("1", "true")


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(LIMIT))
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= MAX_LIMIT:
        raise SpecError("limit", f"must be a whole number from 1 to {MAX_LIMIT}")
    return int(text)


def _ranks(texts: Iterable[str]) -> set[int]:
    words = [word.strip() for text in texts for word in text.split(",") if word.strip()]
    if wrong := [word for word in words if not word.isdecimal() or len(word) > 9]:
        raise SpecError("rank", f"must be ranks such as 0,3, not {wrong[0][:40]!r}")
    return {int(word) for word in words}


def _encode_cursor(cursor: LogCursor) -> str:
    return base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode()


def _decode_cursor(text: str, logs: Iterable[SearchedLog]) -> LogCursor | None:
    if not text:
        return None
    try:
        moment, name, at, line = json.loads(base64.urlsafe_b64decode(text.encode()))
    except (ValueError, TypeError, binascii.Error) as error:
        raise SpecError("cursor", "is not the `next` of a page") from error
    numbers = [moment, at, 0 if line is None else line]
    if not isinstance(name, str) or not all(
        isinstance(number, int) and 0 <= number < 2**53 for number in numbers
    ):
        raise SpecError("cursor", "is not the `next` of a page")
    # With an unknown log the search would silently start again at the first one.
    if name and name not in {log.name for log in logs}:
        raise SpecError("cursor", "belongs to another search: its log is not among these")
    return LogCursor(moment, name, at, line)
