from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.hub import Hub
from tests.mlflow.clients import run_client
from tests.mlflow.raw import MlflowCaller, contributor_token, open_client
from tracking.mlflow import run_cache
from workspaces import process_caches

ClientRunner = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def client(mlflow_python: str, hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> ClientRunner:
    """Runs a script with the MLflow client against `hub`; what it told. Importing it costs seconds: one
    script a module."""

    def run(script: str, **options: Any) -> dict[str, Any]:
        return run_client(mlflow_python, hub, script, tmp_path_factory.mktemp("client"), **options)

    return run


@pytest.fixture
async def me(transactional_db: None, valkey: str) -> AsyncIterator[MlflowCaller]:
    """A contributor."""
    process_caches.clear_all()
    run_cache.forget_run()
    process_caches.clear_all()
    async with open_client() as client:
        yield MlflowCaller(client, await contributor_token())
