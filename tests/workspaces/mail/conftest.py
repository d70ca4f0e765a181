from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.workspaces.mail.mailbox import Mailbox


@pytest.fixture
def mailbox(settings: Settings) -> Iterator[Mailbox]:
    """The mail server of the settings."""
    running = Mailbox().start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", running.port
    settings.EMAIL_URL = f"smtp://127.0.0.1:{running.port}"
    yield running
    running.stop()
