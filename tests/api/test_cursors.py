"""Cursors of lists in pages, which anybody can make up."""

from __future__ import annotations

import base64

import pytest
from django.test import Client

from tests.api.asking import RUNS


@pytest.mark.parametrize("path", [RUNS, "/api/v1/alerts/", "/api/v1/experiments/"])
def test_one_of_another_list_is_refused(viewer_api: Client, path: str) -> None:
    answer = viewer_api.get(path, {"cursor": base64.b64encode(b"p=yesterday").decode()})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "cursor"
