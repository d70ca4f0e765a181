"""The drill where root starts the hub, which has an account of its own: backup and restoration leave nothing
that this account cannot use."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.server.separated import HUB_ACCOUNT, SeparatedHub, needs_root, public_folder, uid_of
from tests.backup import drill, hubs

pytestmark = [pytest.mark.slow, needs_root]


@pytest.fixture
def folder() -> Iterator[Path]:
    with public_folder() as folder:
        yield folder


def hub_in(folder: Path) -> SeparatedHub:
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    return SeparatedHub(folder, SECRETS_KEYRING="")


def test_the_hubs_account_makes_it_and_root_restores_it(folder: Path) -> None:
    hub = hub_in(folder / "here")
    backups, keys = folder / "backups", folder / "keys"
    try:
        before = drill.fill(hub.start())
        assert "give it the folder" in hubs.refusal(hub, "backup", str(backups))
        for path in (backups, keys):
            path.mkdir(mode=0o700)
            shutil.chown(path, HUB_ACCOUNT)
        hub.manage("backup", str(backups), "--with-keys", str(keys))
    finally:
        hub.stop()
    restored = hub_in(folder / "elsewhere")
    restored.is_new = True
    try:
        restored.manage("restore", str(backups), "--keys", str(keys))
        restored.token = hub.token
        restored.start()
        assert restored.own_folder.name == "hub"
        before.check(restored)
        assert restored.manage("secrets", "check").returncode == 0
        owners = {path.stat().st_uid for path in (restored.own_folder / "runs").rglob("*")}
        assert owners == {uid_of(HUB_ACCOUNT)}
    finally:
        restored.stop()
