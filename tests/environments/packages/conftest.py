from __future__ import annotations

import pytest

from environments.packages import package_store, upstream


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "PAUSE_S", 0.01)
    # pip has other settings in each test.
    upstream._settings_at.cache_clear()
    monkeypatch.setattr(package_store, "FAILURE_LIFETIME_S", 0.2)
