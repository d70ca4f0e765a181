"""Repositories that the hub does not fetch, and what it says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied

from environments.repositories import commit_folder
from jobs.models import FetchedCommit, RunTag
from jobs.scheduling import run_actions
from jobs.sources import git_sources
from tests.environments.source_builds.git_server import GitServer
from tests.jobs.builders import queued, spec
from tests.jobs.sources.repositories import HELLO, failure, source
from tests.people import make_contributor, make_owner, make_viewer, principal_of
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import GitSource
from workspaces.access import Principal
from workspaces.models import SecretUse
from workspaces.secrets import store

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"url": "git@github.com:owner/name.git"}, "url", "must begin with https:// or ssh://"),
        ({"url": "ssh://git@github.com/owner/name"}, "url", "with a deploy key alone"),
        ({"url": "file:///etc"}, "url", "must be an http:// or https:// address"),
        ({"url": "http://example.org/owner/name"}, "url", "must have an https:// address"),
        ({"url": "https://me:hunter2@example.org/owner/name"}, "url", "must not hold a password"),
        ({"url": "https://example.org/"}, "url", "names its path"),
        ({"url": "https://127.0.0.1/x y"}, "url", "plain characters"),
        ({"ref": "--upload-pack=touch"}, "ref", "is no tag, branch or commit"),
        ({"ref": "a..b"}, "ref", "is no tag, branch or commit"),
        ({"path": "../secrets"}, "path", "is no folder of a repository"),
        ({"path": ".git"}, "path", "is no folder of a repository"),
    ],
)
def test_what_cannot_be_an_address(changes: dict[str, str], field: str, words: str, who: Principal) -> None:
    request = GitSource(**({"url": "https://example.org/owner/name"} | changes))
    with pytest.raises(SpecError, match=words) as error:
        git_sources.fetch(request, who)
    assert error.value.field == f"source.{field}"
    assert "hunter2" not in error.value.message


def test_the_preview_says_the_same_without_asking_anybody(who: Principal, git: GitServer) -> None:
    bad = spec(who, source={"type": "git", "url": "https://example.org/o/n", "ref": "a..b"})
    assert "source.ref" in {item.field for item in run_actions.preview(bad, who).errors}
    request = spec(who, source=source(git, "nobody-asks"))
    reviewed = run_actions.preview(request, principal_of(make_viewer()))
    hints = {item.field: item.message for item in reviewed.findings if item.level == "hint"}
    assert hints["source.url"].startswith("is fetched when the run is submitted")
    assert not FetchedCommit.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"ref": "v9"}, "source.ref", "has no tag, branch or commit v9. Check its spelling"),
        ({"ref": "abcdef1"}, "source.ref", "Of a commit, write all 40 digits"),
        ({"path": "nothing"}, "source.path", "has no folder nothing in its commit"),
        ({"path": "train.py"}, "source.path", "has no folder train.py in its commit"),
    ],
)
def test_what_the_repository_does_not_have(
    changes: dict[str, str], field: str, words: str, who: Principal, git: GitServer
) -> None:
    git.commit("lacking", HELLO)
    at, message = failure(who, git, "lacking", **changes)
    assert at == field
    assert words in message


def test_a_server_that_hangs_costs_a_bounded_time(
    who: Principal, git: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_folder, "MAX_S", 1.0)
    git.is_silent = True
    try:
        assert "did not answer in time" in failure(who, git, "silent")[1]
    finally:
        git.is_silent = False


def test_a_redirect_is_not_followed(who: Principal, git: GitServer) -> None:
    git.redirects = True
    try:
        assert "leads to another address" in failure(who, git, "moved")[1]
    finally:
        git.redirects = False


def test_a_private_one_needs_its_secret(
    who: Principal, git: GitServer, tmp_path: Path, settings: Any
) -> None:
    settings.SECRETS_KEYRING = str(tmp_path / "keyring")
    git.commit("private", HELLO)
    place = git.url("private").removeprefix("http://")
    url = f"http://oauth2:${{GIT_TOKEN}}@{place}"
    git.login = "oauth2:hunter2-hunter2"
    try:
        assert "wants a password" in failure(who, git, "private")[1]
        with pytest.raises(SpecError, match=r"no secret GIT_TOKEN .*/settings/secrets/"):
            git_sources.fetch(GitSource(url), who)
        store.put(principal_of(make_owner()), "GIT_TOKEN", "hunter2-hunter2", store.WORKSPACE)
        run = queued(who, source={"type": "git", "url": url})
        assert run.spec["source"]["url"] == url
        use = SecretUse.objects.get()
        assert (use.kind, use.subject) == ("source", git.url("private"))
        tags = dict(RunTag.objects.filter(run=run).values_list("key", "value"))
        assert tags["mlflow.source.git.repoURL"] == git.url("private")
        git.login = "oauth2:another"
        with pytest.raises(SpecError, match="refuses the user or the secret GIT_TOKEN") as error:
            git_sources.fetch(GitSource(url), who)
        assert "hunter2" not in error.value.message
    finally:
        git.login = ""


def test_a_host_that_is_not_listed(who: Principal, settings: Any) -> None:
    settings.PACKAGE_INDEX_HOSTS = ("pypi.example.org",)
    with pytest.raises(SpecError, match="not one of the hosts from which this installation takes"):
        git_sources.fetch(GitSource("https://github.com/owner/name"), who)


def test_viewers_fetch_nothing(git: GitServer) -> None:
    make_contributor()
    with pytest.raises(PermissionDenied, match="contributor"):
        git_sources.fetch(GitSource(git.url("x")), principal_of(make_viewer()))


def test_of_many_at_once_some_are_told_to_wait(
    who: Principal, git: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_sources, "WAIT_S", 0.01)
    for _ in range(git_sources.MAX_AT_ONCE):
        assert git_sources._slots.acquire(blocking=False)
    try:
        assert "try again in a minute" in failure(who, git, "x")[1]
    finally:
        for _ in range(git_sources.MAX_AT_ONCE):
            git_sources._slots.release()
