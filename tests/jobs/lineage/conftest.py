"""A run with outputs, from which carl makes datasets."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import Run
from jobs.states import RunState
from tests.people import api_client, make_contributor
from tests.registry.builders import run_with
from workspaces.models import User


@pytest.fixture
def carl() -> User:
    return make_contributor()


@pytest.fixture
def api(carl: User) -> Client:
    return api_client(carl)


@pytest.fixture
def run(carl: User) -> Run:
    made = run_with("features/2024/a.npy", "features/b.npy", "features.txt", "model.pt")
    Run.objects.filter(pk=made.pk).update(state=RunState.COMPLETED, created_by=carl)
    made.refresh_from_db()
    return made


def derive(api: Client, run: Run, name: str = "features", **fields: Any) -> Any:
    body = {"name": name, **fields}
    return api.post(f"/api/v1/runs/{run.number}/datasets/", body, "application/json")
