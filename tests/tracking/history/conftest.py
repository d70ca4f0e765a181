from __future__ import annotations

import pytest

from tracking.history import key_catalog


@pytest.fixture(autouse=True)
def _fresh_process() -> None:
    """What the last test's process remembered must not meet the new rows."""
    key_catalog.restart()
