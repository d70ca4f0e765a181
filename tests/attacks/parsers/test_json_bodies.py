"""JSON bodies of the API are read within bounded memory, whoever sends them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.exceptions import APIException

from tests.attacks.parsers.bounds import bounded
from tests.people import client_of, make_contributor
from workspaces.api.json_body import MAX_VALUES, BoundedJSONParser

HOSTILE: dict[str, Callable[[], bytes]] = {
    "small objects": lambda: b"[" + b'{"":0},' * 1_000_000 + b"0]",
    "as many as pass": lambda: b"[" + b'{"":0},' * (MAX_VALUES // 2 - 1) + b"0]",
    "nested": lambda: b"[" * 190_000,
    "nested objects": lambda: b'{"":' * 190_000,
    "a huge number": lambda: b"9" * 8_000_000,
    "the same key": lambda: b"{" + b'"a":[],' * 90_000 + b'"a":0}',
    "invalid UTF-8": lambda: b'"' + b"\xff" * 1_000_000,
    "too large": lambda: b" " * 40 * 2**20,
    "not a number": lambda: b"[NaN]",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_body_is_read_or_refused_within_the_limits(name: str) -> None:
    def read() -> Any:
        try:
            BoundedJSONParser().parse(io.BytesIO(HOSTILE[name]()))
        except APIException as refusal:
            return refusal
        return None

    bounded(read)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "status"),
    [("small objects", 413), ("nested", 400), ("a huge number", 400), ("not a number", 400)],
)
def test_the_api_answers_with_a_problem(name: str, status: int) -> None:
    client: Client = client_of(make_contributor())
    answer = client.post("/api/v1/runs/", data=HOSTILE[name](), content_type="application/json")
    assert (answer.status_code, answer["content-type"]) == (status, "application/problem+json")
