"""What leaves the store of environments, and what never does."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from environments.lifecycle import delete_environment
from environments.models import Environment, EnvironmentVersion, LockedFile, PackageFile
from jobs.models import PreparedEnvironment, Run
from jobs.retention.environment_purge import EnvironmentKey, purge_environments
from registry.certificates.certified_environments import certified_environments
from registry.models import ModelVersion, RegisteredModel
from tests.environments.locks import locked
from tests.jobs.builders import node, queued
from tests.people import make_owner, principal_of
from workspaces.access import Principal

LATER = timedelta(days=100)
SHARED = "f" * 64


@pytest.fixture
def later(settings: Any, db: None) -> datetime:
    settings.ENVIRONMENT_FILE_DAYS = 90
    return timezone.now() + LATER


def uncertified() -> set[EnvironmentKey]:
    return set()


def with_files(
    who: Principal, name: str, sha256: str, *, url: str = "https://x.test/a.whl"
) -> EnvironmentVersion:
    version = locked(who, name)
    EnvironmentVersion.objects.filter(pk=version.pk).update(resolved_at=timezone.now())
    for number, digest in enumerate((sha256, SHARED)):
        LockedFile.objects.create(
            version=version, project=f"p{number}", filename=f"p{number}.whl", url=url, sha256=digest
        )
        PackageFile.objects.get_or_create(sha256=digest, defaults={"size_bytes": 1})
    return version


def stored() -> set[str]:
    return {sha256[0] for sha256 in PackageFile.objects.values_list("sha256", flat=True)}


def test_files_leave_that_nobody_uses_and_no_run_names(
    who: Principal, later: datetime, settings: Any
) -> None:
    with_files(who, "unused", "a" * 64)
    with_files(who, "named", "b" * 64)
    queued(who, environment={"name": "named"})
    used = with_files(who, "used", "c" * 64)
    PreparedEnvironment.objects.create(
        node=node(), name="used", version="1", own_version=used, prepared_at=later
    )
    with_files(who, "built", "d" * 64, url="")
    with_files(who, "certified", "e" * 64)

    purge_environments(uncertified, timezone.now())
    assert stored() == set("abcdef")
    settings.ENVIRONMENT_FILE_DAYS = 0
    purge_environments(uncertified, later)
    assert stored() == set("abcdef")

    settings.ENVIRONMENT_FILE_DAYS = 90
    purge_environments(lambda: {(who.workspace.pk, "certified", "1")}, later)

    # What another version needs stays, too.
    assert stored() == set("bcdef")


def test_a_deleted_environment_goes_with_the_last_that_names_it(who: Principal, later: datetime) -> None:
    version = with_files(who, "mine", "a" * 64)
    run = queued(who, environment={"name": "mine"})
    delete_environment(principal_of(make_owner()), version.environment, is_named=True)
    certificate = '{"origin":{"run":{"environment":{"name":"mine","version":"1"}}}}'

    purge_environments(uncertified, later)
    assert Environment.objects.filter(name="mine").exists()
    Run.objects.filter(pk=run.pk).delete()
    model = RegisteredModel.objects.create(workspace=who.workspace, name="net")
    made = ModelVersion.objects.create(model=model, number=1, source_path="net.pt", certificate=certificate)
    purge_environments(certified_environments, later)
    assert Environment.objects.filter(name="mine").exists()
    made.delete()
    purge_environments(certified_environments, timezone.now())
    assert Environment.objects.filter(name="mine").exists(), "too early"

    purge_environments(certified_environments, later)

    assert not Environment.objects.filter(name="mine").exists()
