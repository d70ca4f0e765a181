"""Two nodes and a hub that save and resume large checkpoints, and a server of rclone beside the hub."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.checkpoints import training
from tests.hosts.bench import CLUSTER, Host, Hosts
from tests.hub import eventually, free_port

SCRIPT = Path(training.__file__).read_text()
# The hub's patience is no part of what is measured.
PATIENCE = {"NODE_UNREACHABLE_AFTER": "3", "NODE_LOST_AFTER": "8"}
LOG = "70_driver_log.txt"


class CheckpointHosts(Hosts):
    """`files` of `size` bytes each are one checkpoint. The hub and the server of rclone use the cores that
    the first node does not have."""

    def __init__(self, folder: Path, python: str, files: int, size: int) -> None:
        super().__init__(folder, python, 2, PATIENCE)
        self.files, self.size = files, size
        self.served = folder / "served"
        self._rclone_url = f"https://{self.bridge.hub_address}:{free_port()}"
        self._server: subprocess.Popen[bytes] | None = None

    def start_hub(self) -> None:
        cores = os.sched_getaffinity(0)
        # The same core that the first machine runs on.
        os.sched_setaffinity(0, cores - {1} or cores)
        super().start_hub()
        self.served.mkdir()
        tls = self.hub.own_folder / "tls"
        command = ["rclone", "serve", "webdav", str(self.served), "--addr", self._rclone_url[8:]]
        certificate = ["--cert", str(tls / "server.pem"), "--key", str(tls / "server-key.pem")]
        # Sizes and names are all that `rclone copy` asks for here, as with most WebDAV servers.
        self._server = subprocess.Popen([*command, *certificate], stdin=subprocess.DEVNULL)

    def start_hosts(self) -> None:
        super().start_hosts()
        for host in self.hosts:
            shutil.copy(self.hub.own_folder / "tls" / "ca.pem", host.folder / "ca.pem")

    def stop(self) -> None:
        super().stop()
        if self._server is not None:
            self._server.terminate()
            self._server.wait()

    @property
    def rclone_settings(self) -> dict[str, str]:
        """The remote `store` for programs on a node."""
        return {
            "RCLONE_CONFIG": "/tmp/no-rclone.conf",
            "RCLONE_CONFIG_STORE_TYPE": "webdav",
            "RCLONE_CONFIG_STORE_VENDOR": "other",
            "RCLONE_CONFIG_STORE_URL": self._rclone_url,
            "RCLONE_CA_CERT": "/tmp/ca.pem",
        }

    def train(self, windows: Sequence[str] = (), interval: float = 0, retries: int = 0) -> str:
        """Returns the id of a run of the script, which goes on until it is canceled."""
        numbers = ["--files", str(self.files), "--size", str(self.size), "--interval", str(interval)]
        return self.runs.script(
            SCRIPT,
            arguments=["--windows", *windows, *numbers],
            environment_variables={**self.rclone_settings, "OPENBLAS_NUM_THREADS": "1"},
            resources={"cluster": CLUSTER},
            checkpoint={"keep": 1},
            limits={"retries": retries, "grace_s": 1},
        )

    def lines(self, run: str) -> list[dict[str, Any]]:
        """What the newest attempt of the run has told."""
        if (detail := self.runs.detail(run))["state"] in ("Failed", "Completed"):
            raise RuntimeError(f"{detail['sentence']} {self.runs.log(run, LOG).decode()}")
        text = self.runs.log(run, LOG).decode()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]

    def first_step(self, run: str, *, with_files: bool) -> float:
        """Returns the seconds from the moment when the run was last queued to its first step, with or without
        a checkpoint."""

        def told() -> float:
            for line in self.lines(run)[:1]:
                if bool(line["there"]) == with_files:
                    return float(line["first_step_at"])
            return 0.0

        at = eventually(told, 300, "the first step")
        if with_files:
            (there,) = (line["there"] for line in self.lines(run)[:1])
            if there != [self.size] * self.files:
                raise RuntimeError(f"the run has begun with files of these sizes: {there}")
        events = self.runs.get(f"/runs/{run}/events/")
        queued = [event["at"] for event in events if event["to_state"] == "Queued"]
        return at - datetime.fromisoformat(queued[-1]).timestamp()

    def checkpoints(self, run: str, state: str) -> list[dict[str, Any]]:
        return [row for row in self.runs.get(f"/runs/{run}/checkpoints/") if row["state"] == state]

    def await_checkpoint(self, run: str) -> None:
        eventually(lambda: self.checkpoints(run, "complete"), 300, "the checkpoint is complete")

    def cancel(self, run: str) -> None:
        self.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
        self.runs.ended(run, 120)

    def lose(self, host: Host) -> None:
        host.crash()
        self.until(host, "unreachable", "lost")

    def bring_back(self, host: Host) -> None:
        host.boot()
        host.start_agent()
        self.until(host, "ready")

    def copy_by_hand(self, host: Host) -> float:
        """Returns the seconds that `rclone copy` of as much from the hub's machine to this one takes."""
        source = self.served / "by-hand"
        if not source.exists():
            training.save(source, self.files, self.size)
        started = time.monotonic()
        host.run("rclone", "copy", "store:by-hand", "/tmp/copied", env=self.rclone_settings, timeout=600)
        seconds = time.monotonic() - started
        copied = sorted(path.stat().st_size for path in (host.folder / "copied").iterdir())
        if copied != [self.size] * self.files:
            raise RuntimeError(f"rclone has copied files of these sizes: {copied}")
        shutil.rmtree(host.folder / "copied")
        return seconds
