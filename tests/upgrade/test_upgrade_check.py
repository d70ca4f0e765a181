"""What `manage.py upgrade --check` says about a hub."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from clusters.models import Cluster, Node
from trainhub import __version__
from trainhub.models import HubRelease
from trainhub.upgrade.release_record import DatabaseTooNew, check_release, record_release
from trainhub.upgrade.setting_names import unknown_settings
from workspaces import audit
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db


def report() -> str:
    out = StringIO()
    call_command("upgrade", "--check", stdout=out)
    return out.getvalue()


def refused_report() -> str:
    out = StringIO()
    with pytest.raises(CommandError, match="before the upgrade"):
        call_command("upgrade", "--check", stdout=out)
    return out.getvalue()


def add_node(version: str) -> None:
    cluster, _ = Cluster.objects.get_or_create(name="lab")
    Node.objects.create(cluster=cluster, name=f"of-{version}", agent_version=version, token_digest=version)


def test_a_hub_that_is_up_to_date_has_nothing_in_the_way() -> None:
    record_release()
    text = report()
    assert f"the database is of {__version__}" in text
    assert "No migration is pending." in text
    assert "No backup is recorded." in text
    assert "Nothing is in the way" in text


def test_a_pending_migration_is_explained() -> None:
    MigrationRecorder(connection).record_unapplied("trainhub", "0002_hub_release")
    assert "trainhub.0002_hub_release only adds" in report()


def test_the_age_of_the_last_backup_counts() -> None:
    audit.record("command line", "hub.backed-up", "2026-11-29T201500Z", folder="/mnt/backup")
    assert "ok    The last backup is of" in report()
    AuditEvent.objects.update(at=timezone.now() - timedelta(days=2))
    assert "note  The last backup is of" in report()


def test_agents_that_are_too_new_or_too_old_block() -> None:
    add_node(__version__)
    assert "0 of 1 nodes" in report()
    add_node("0.2.0")
    assert "agent of lab/of-0.2.0 is 0.2.0, newer than this hub's" in refused_report()
    Node.objects.update(agent_version="")
    assert "0 of 0 nodes" in report()


def test_a_setting_that_this_version_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEMETRY_KEEP_1S", "3")
    monkeypatch.setenv("EDITOR", "vi")
    assert "TELEMETRY_KEEP_1S" in unknown_settings()
    assert "EDITOR" not in unknown_settings()
    assert "TELEMETRY_KEEP_1S is set, and this version has no such setting" in report()


def test_a_database_of_a_newer_version_is_used_or_refused_as_that_version_says() -> None:
    record_release()
    MigrationRecorder(connection).record_applied("jobs", "9999_later")
    HubRelease.objects.update(version="9.1", oldest_version=__version__)
    assert "it goes on without jobs.9999_later" in check_release()
    record_release()
    assert HubRelease.objects.get().version == "9.1"
    HubRelease.objects.update(oldest_version="9.0")
    with pytest.raises(DatabaseTooNew, match=r"Install 9\.0 or newer"):
        check_release()
    assert "stop  The database was migrated by TrainHub 9.1" in refused_report()
    HubRelease.objects.all().delete()
    with pytest.raises(DatabaseTooNew, match="a newer TrainHub"):
        check_release()
