from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.clusters.provisioning.builders import Provider


@pytest.fixture
def provider(tmp_path: Path, settings: Settings) -> Provider:
    """One that does as it is asked, until a test gives it another script."""
    settings.NODE_PROVIDERS = str(tmp_path / "providers")
    settings.PROVIDER_TIMEOUT = 20.0
    return Provider(tmp_path / "providers")
