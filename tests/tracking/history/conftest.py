from __future__ import annotations

import pytest

from tracking.history import known


@pytest.fixture(autouse=True)
def _fresh_process() -> None:
    """What the last test's process remembered must not meet the new rows."""
    known.restart()
