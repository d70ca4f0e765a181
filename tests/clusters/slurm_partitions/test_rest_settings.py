"""Which addresses of a slurmrestd are taken. Here is none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.people import api_client, make_operator

pytestmark = pytest.mark.django_db
JSON = "application/json"
URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("settings", "field", "words"),
    [
        ({"rest_url": "http://slurm.example:6820"}, "slurm.rest_url", "Without encryption"),
        ({"rest_url": "slurm.example"}, "slurm.rest_url", "Enter an address like https://"),
        ({"rest_url": "https://a@slurm.example"}, "slurm.rest_url", "Enter an address like https://"),
        ({"rest_url": "https://slurm.example/?a=1"}, "slurm.rest_url", "Enter an address like https://"),
        ({"rest_url": "https://slurm.example:99999"}, "slurm.rest_url", "Enter an address like https://"),
        ({"rest_url": URL, "command_host": "a@b.invalid"}, "slurm.rest_url", "Choose one"),
        ({"rest_url": URL, "rest_ca": "hello"}, "slurm.rest_ca", "as PEM"),
        ({"rest_url": URL, "relay_port": 8443}, "slurm.relay_port", "needs a login node"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], field: str, words: str) -> None:
    key = {"host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBhZzIRTkR5+k5Hl8UEe4A9UBbDdXBqf1PrW3SlR7F0X"}
    body = {"name": "hpc", "kind": "slurm", "slurm": {"partition": "main", **key, **settings}}
    answer = api_client(make_operator()).post("/api/v1/clusters/", body, JSON)
    assert answer.status_code == 400
    messages = {problem["field"]: problem["message"] for problem in answer.json()["errors"]}
    assert words in messages[field]


@pytest.mark.parametrize(
    "url", ["https://slurm.example:6820", "https://slurm.example/rest", "http://[::1]:6820"]
)
def test_addresses_that_are_taken(url: str) -> None:
    body = {"name": "hpc", "kind": "slurm", "slurm": {"partition": "main", "rest_url": url}}
    answer = api_client(make_operator()).post("/api/v1/clusters/", body, JSON)
    assert answer.status_code == 201, answer.content
    assert answer.json()["slurm"]["rest_url"] == url
