"""Short words for asking the API in tests."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

RUNS = "/api/v1/runs/"


def post(client: Client, path: str, body: Any = None, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(path, {} if body is None else body, "application/json", headers=named)


def upload(client: Client, content: bytes, name: str = "file") -> Any:
    return client.post("/api/v1/snapshots/", {name: SimpleUploadedFile("source.zip", content)})


def refused(answer: Any, status: int, field: str, words: str) -> None:
    """The answer is a problem of this status whose first error names `field` and says `words`."""
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    first = body["errors"][0]
    assert (first["field"], words in first["message"]) == (field, True), body
    assert first["message"] in body["detail"]
