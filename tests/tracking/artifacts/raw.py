"""The artifact routes as a client sees them: requests over ASGI, tokens in headers, rows that are really
committed."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from asgiref.sync import sync_to_async
from django.conf import settings
from starlette.applications import Starlette

from jobs import outputs
from jobs.models import Artifact, Run
from tests.people import make_contributor, make_person, make_viewer, make_workspace, token_of
from tests.registry.builders import blob
from tests.tracking.builders import logged_run
from tracking.artifacts.routes import routes
from tracking.models import LoggedModel
from workspaces.states import Role

ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
MPU = "/api/2.0/mlflow-artifacts/mpu"
Headers = dict[str, str]


def open_client(headers: Headers | None = None) -> httpx.AsyncClient:
    app = Starlette(routes=routes)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://hub:8000", headers=headers)


@dataclass(frozen=True)
class LoggedRunClient:
    """A run of a contributor's, and what each person sends along."""

    run: Run
    contributor: Headers
    viewer: Headers
    other: Headers
    """Of a contributor of another workspace."""

    @property
    def root(self) -> str:
        return f"{self.run.experiment_id}/{self.run.pk}/artifacts"

    @property
    def url(self) -> str:
        return f"{ARTIFACTS}/{self.root}"


@sync_to_async
def logged_run_client(**fields: Any) -> LoggedRunClient:
    other = make_person("otto", Role.CONTRIBUTOR, make_workspace("other"))
    return LoggedRunClient(
        logged_run(**fields),
        bearer_headers(token_of(make_contributor())),
        bearer_headers(token_of(make_viewer())),
        bearer_headers(token_of(other, make_workspace("other"))),
    )


@sync_to_async
def store_files(run: Run, attempt: int, **files: str) -> None:
    """`files`: name -> content."""
    for name, content in files.items():
        outputs.put_output(run, attempt, name, blob(content.encode()), len(content))


@sync_to_async
def create_model(run: Run) -> LoggedModel:
    return LoggedModel.objects.create(experiment=run.experiment, run=run, name="net")


def bearer_headers(token: str) -> Headers:
    return {"Authorization": f"Bearer {token}"}


def stored_files() -> set[Path]:
    """Everything below the blobs, half-written files included."""
    return {file for file in (Path(settings.DATA_DIR) / "blobs").rglob("*") if file.is_file()}


@contextmanager
def limited_disk(most: int) -> Iterator[None]:
    """No file can become larger than `most` bytes: a write beyond that fails as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@sync_to_async
def stored_paths() -> list[str]:
    """Returns the paths of all artifacts."""
    return sorted(Artifact.objects.values_list("path", flat=True))
