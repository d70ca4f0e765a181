"""Sources from the repositories of a test's git server."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import FetchedCommit
from jobs.sources import git_sources
from tests.environments.source_builds.git_server import GitServer
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import GitSource
from workspaces.access import Principal

HELLO = {"train.py": "print('hello')\n", "lib/model.py": "width = 3\n"}


def source(git: GitServer, name: str, **changes: str) -> dict[str, Any]:
    return {"type": "git", "url": git.url(name), **changes}


def fetched(who: Principal, git: GitServer, name: str, **changes: str) -> FetchedCommit:
    request = GitSource(git.url(name), **changes)
    row = git_sources.fetched(git_sources.fetch(request, who), who.workspace)
    assert row is not None
    return row


def failure(who: Principal, git: GitServer, name: str, **changes: str) -> tuple[str, str]:
    with pytest.raises(SpecError) as error:
        git_sources.fetch(GitSource(git.url(name), **changes), who)
    return error.value.field, error.value.message


def queued_source(row: FetchedCommit) -> dict[str, str]:
    names = ("url", "ref", "path", "commit")
    return {"type": "git", "id": row.snapshot.sha256} | {name: getattr(row, name) for name in names}
