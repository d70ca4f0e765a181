"""A hub with one of everything that a backup must bring back, and what is to be the same afterwards."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import runs
from tests.hub import Hub, eventually

MAKES_A_MODEL = """
import os
os.makedirs("outputs", exist_ok=True)
open("outputs/model.bin", "wb").write(bytes(range(256)) * 4000)
print("made it")
"""
WRITES = """
import time
for number in range(100_000):
    print(f"line {number} " + "x" * 200, flush=True)
    time.sleep(0.01)
"""
ENDS = "import time; time.sleep({seconds}); print('ended')"
SECRET = "correct horse battery staple"
LOG = "70_driver_log.txt"


@dataclass(frozen=True)
class HubContent:
    """What a hub holds: the finished run with its log, its model's files as a zip, and the secret's name."""

    run: str
    log: bytes
    zip_sha256: str

    def check(self, hub: Hub) -> None:
        """Fails unless that hub has the same."""
        assert runs.told(hub, self.run)["state"] == "Completed"
        assert runs.log(hub, self.run) == self.log
        assert hashlib.sha256(model_zip(hub)).hexdigest() == self.zip_sha256


def fill(hub: Hub) -> HubContent:
    run = runs.submit(hub, MAKES_A_MODEL)
    runs.wait_for(hub, run, "Completed")
    with hub.client() as client:
        client.put("/api/v1/secrets/PHRASE/", json={"value": SECRET}).raise_for_status()
        body = {"run": run, "path": "model.bin"}
        client.post("/api/v1/models/net/", json={})
        client.post("/api/v1/models/net/versions/", json=body).raise_for_status()
    return HubContent(run, runs.log(hub, run), hashlib.sha256(model_zip(hub)).hexdigest())


def model_zip(hub: Hub) -> bytes:
    with hub.client() as client:
        return client.get("/api/v1/models/net/versions/1/zip").raise_for_status().content


def backup_of(folder: Path) -> Path:
    """The newest backup in a folder."""
    return max(path.parent for path in folder.glob("*/manifest.json"))


def manifest(backup: Path) -> dict[str, Any]:
    return dict(json.loads((backup / "manifest.json").read_text()))


def check_drill(hub: Hub, restored: Hub, folder: Path) -> None:
    """Backs up `hub` while one run writes and another ends, and restores it as `restored`."""
    before = fill(hub)
    writer, ending = runs.submit(hub, WRITES), runs.submit(hub, ENDS.format(seconds=2))
    eventually(lambda: len(runs.log(hub, writer)) > 10_000, 60, "the run writes")
    earlier = len(runs.log(hub, writer))
    hub.manage("backup", str(folder / "backups"), "--with-keys", str(folder / "keys"))
    during = len(runs.log(hub, writer))
    runs.wait_for(hub, ending, "Completed")
    with hub.client() as client:
        client.post(f"/api/v1/runs/{writer}/cancel/").raise_for_status()
    runs.wait_for(hub, writer)
    whole = runs.log(hub, writer)
    verified = hub.manage("backup", "--verify", str(folder / "backups"))
    assert "is whole" in verified.stdout
    backup = backup_of(folder / "backups")
    assert manifest(backup)["missing_count"] == 0
    excluded = manifest(backup)["excluded"]
    assert [name for name, why in excluded.items() if "unknown" in why] == []
    hub.stop()

    said = restored.manage("restore", str(folder / "backups"), "--keys", str(folder / "keys")).stdout
    assert "is missing" not in said
    assert restored.settings["SECRETS_KEYRING"] != hub.settings["SECRETS_KEYRING"]
    kept = (restored.data_dir / "runs" / writer / "1" / "logs" / LOG).read_bytes()
    assert whole.startswith(kept)
    assert earlier <= len(kept) <= during
    # A start would take the processes of the old hub, seconds ago, for servers of this one.
    assert " web " not in restored.manage("servers").stdout
    restored.token = hub.token
    restored.start()
    before.check(restored)
    assert restored.manage("secrets", "check").returncode == 0
    assert restored.manage("audit", "verify").returncode == 0
    (folder / "net.zip").write_bytes(model_zip(restored))
    assert "verified" in restored.manage("model", "verify", str(folder / "net.zip")).stdout.lower()
    again = runs.submit(restored, "print('after the restoration')")
    runs.wait_for(restored, again, "Completed")
