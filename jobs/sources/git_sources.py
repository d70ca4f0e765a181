"""Sources from git repositories: the hub fetches the files of one commit, and keeps them as a snapshot."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from django.core.exceptions import PermissionDenied
from django.utils import timezone

from environments.indexes.index_address import IndexCredentials
from environments.repositories.commit_folder import CommitFolder, open_commit_folder
from environments.repositories.git_process import RepositoryFailed
from environments.repositories.repository_address import (
    DEFAULT_BRANCH,
    Repository,
    check_ref,
    check_subdirectory,
    read_repository_url,
    read_ssh_url,
)
from jobs.models import FetchedCommit
from jobs.sources import snapshots
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import GitSource, Source
from workspaces.access import Principal, lacking
from workspaces.models import Workspace
from workspaces.secrets import uses
from workspaces.secrets.errors import SecretsUnavailable
from workspaces.states import Role

EXAMPLE = "https://host/owner/name"
# Each keeps a thread of this process for up to MAX_S seconds.
MAX_AT_ONCE = 4
WAIT_S = 10.0
# Names that a warning lists.
MAX_NAMES = 5
_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


def fetch(source: GitSource, principal: Principal) -> GitSource:
    """Fetches the source now, and returns it with its commit and its snapshot. Raises SpecError and
    PermissionDenied."""
    if not principal.may(Role.CONTRIBUTOR):
        raise PermissionDenied(lacking(principal, Role.CONTRIBUTOR))
    repository = read_git_source(source)
    login = _login(repository, principal)
    try:
        with _slot(), open_commit_folder(repository, login) as folder:
            snapshot = snapshots.from_folder(folder.path, principal)
    except RepositoryFailed as error:
        raise SpecError(f"source.{error.part}", _phrase(str(error))) from error
    facts = {"branch": folder.branch, "warnings": _warnings(folder), "fetched_by": principal.user}
    names = {"url": source.url, "ref": source.ref, "path": source.path, "commit": folder.commit}
    # Two requests at once may both make a row: they say the same.
    rows = FetchedCommit.objects.filter(workspace=principal.workspace, snapshot=snapshot, **names)
    if not rows.update(**facts, fetched_at=timezone.now()):
        FetchedCommit.objects.create(workspace=principal.workspace, snapshot=snapshot, **names, **facts)
    return replace(source, commit=folder.commit, id=snapshot.sha256)


def fetched(source: GitSource, workspace: Workspace) -> FetchedCommit | None:
    """Returns what the hub knows of a source that it has fetched for the workspace; None for one that it has
    not, whatever the spec says."""
    names = {"url": source.url, "ref": source.ref, "path": source.path, "commit": source.commit}
    rows = FetchedCommit.objects.filter(workspace=workspace, snapshot__sha256=source.id, **names)
    return rows.select_related("snapshot").first()


def mlflow_tags(source: Source, workspace: Workspace) -> dict[str, str]:
    """Returns the tags by which MLflow tells where the code of a run comes from; none for other sources."""
    row = fetched(source, workspace) if isinstance(source, GitSource) else None
    if row is None:
        return {}
    repository = read_git_source(GitSource(row.url))
    tags = {
        "mlflow.source.git.repoURL": repository.url,
        "mlflow.source.git.commit": row.commit,
        "mlflow.source.git.branch": row.branch,
    }
    return {name: value for name, value in tags.items() if value}


def read_git_source(source: GitSource) -> Repository:
    """Returns the repository that the source names. Raises SpecError with the field that is wrong."""
    if "://" not in source.url:
        raise SpecError(
            "source.url",
            f"must begin with https:// or ssh://, as in {EXAMPLE}; for a private repository store a token as "
            "a secret at /settings/secrets/, and write https://${NAME}@host/owner/name, or a deploy key, and "
            "write ssh://${NAME}@host/owner/name",
        )
    credentials: IndexCredentials | None = None
    field = "source.url"
    try:
        text = source.url.removeprefix("git+")
        is_ssh = text.startswith("ssh://")
        url, credentials = read_ssh_url(text) if is_ssh else read_repository_url(text, EXAMPLE)
        field = "source.ref"
        if source.ref:
            check_ref(source.ref)
        field = "source.path"
        if source.path:
            check_subdirectory(source.path)
    except ValueError as error:
        raise SpecError(field, str(error)) from error
    return Repository(url, source.ref or DEFAULT_BRANCH, source.path, credentials)


@contextmanager
def _slot() -> Iterator[None]:
    if not _slots.acquire(timeout=WAIT_S):
        raise SpecError("source.url", "cannot be fetched now: the hub fetches others; try again in a minute")
    try:
        yield
    finally:
        _slots.release()


def _login(repository: Repository, principal: Principal) -> IndexCredentials | None:
    credentials = repository.credentials
    if credentials is None:
        return None
    names = credentials.secret_names
    try:
        values = uses.take(
            principal.workspace, principal.user, names, uses.SOURCE, repository.url, actor=principal.user
        )
    except SecretsUnavailable as error:
        raise SpecError("source.url", f"{error.message}; store it at /settings/secrets/") from error
    return credentials.with_values(values)


def _phrase(sentence: str) -> str:
    text = sentence.rstrip(".")
    return f"{text[:1].lower()}{text[1:]}"


def _warnings(folder: CommitFolder) -> list[str]:
    warnings = []
    if folder.submodules:
        warnings.append(
            f"submodules are not fetched, their folders are empty: {_listed(folder.submodules)}; copy their "
            "files into the repository, or install them as packages (git+https://…) in the environment."
        )
    if folder.pointers:
        warnings.append(
            f"files of Git LFS are not fetched, only their pointers are there: {_listed(folder.pointers)}; "
            "keep data outside of the source."
        )
    return warnings


def _listed(names: Collection[str]) -> str:
    first = ", ".join(list(names)[:MAX_NAMES])
    return first if len(names) <= MAX_NAMES else f"{first} and {len(names) - MAX_NAMES} more"
