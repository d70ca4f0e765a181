"""S15: a session of the version before, whose cookie other ports may have seen, ends with the upgrade."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone

pytestmark = pytest.mark.django_db
MIGRATION = "trainhub.migrations.0001_end_sessions_of_old_cookies"


def test_the_upgrade_ends_every_session() -> None:
    Session.objects.create(
        session_key="old", session_data="", expire_date=timezone.now() + timedelta(days=14)
    )
    import_module(MIGRATION).end_sessions(apps, connection.schema_editor())
    assert not Session.objects.exists()
