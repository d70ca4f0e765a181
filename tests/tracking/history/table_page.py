"""The run table as somebody sees it."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.test import Client

from tests.people import client_of, make_owner
from workspaces.models import User

HTMX = {"HX-Request": "true"}


def address(path: str = "/runs/", **params: Any) -> str:
    return f"{path}?{urlencode(params, doseq=True)}"


def text_of(
    url: str, user: User | None = None, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> str:
    answer = client_of(user or make_owner()).get(url, headers=dict(headers or {}))
    assert answer.status_code == status, answer.content.decode()[:500]
    return answer.content.decode()


def table_text(user: User | None = None, **params: Any) -> str:
    return text_of(address(**params), user, headers=HTMX)


def names(text: str) -> list[str]:
    """Of the runs, row by row."""
    return re.findall(r'<a href="/runs/\d+/" class="th-cut">([^<]*)</a>', text)


def heads(text: str) -> list[str]:
    return [strip(head) for head in re.findall(r"<th[^>]*>(.*?)</th>", text, re.DOTALL)]


def rows(text: str) -> list[list[str]]:
    """The cells of every row of the body."""
    body = text.split("<tbody>")[1].split("</tbody>", maxsplit=1)[0]
    return [
        [strip(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
        for row in body.split("<tr ")[1:]
    ]


def row_markup(text: str, number: int) -> str:
    return next(
        f"<tr {row.split('</tr>')[0]}</tr>" for row in text.split("<tr ") if f'id="run-{number}"' in row
    )


def strip(markup: str) -> str:
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", markup).split()))


def bulk(client: Client, verb: str, *numbers: int, **more: str) -> Any:
    return client.post("/runs/bulk/", {"verb": verb, "run": numbers, "next": "/runs/?q=x", **more})
