"""Small builders for the node's tests. Where an order names no environment, `place` says in which its ranks
run."""

from __future__ import annotations

import io
import os
import sys
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.node.containers import place
from tests.node.hub import FakeHub
from trainhub_launch.order import EnvironmentSpec, NodeOrder
from trainhub_launch.plan import NodeCommand, PlannedProcess, Reference
from trainhub_node.settings import NodeSettings


def settings(hub: FakeHub, folder: Path, **changes: object) -> NodeSettings:
    instance = NodeSettings(
        hub_url=hub.url,
        token="node-token-of-the-tests",
        name="here",
        folder=folder,
        cache=folder / "cache",
        slots=8,
        cores=2,
        cache_bytes=10**9,
        python=getattr(sys, "_base_executable", sys.executable),
        engine=place.current.engine,
        # It makes the cache of data in a thread of its own, while a test may already remove it.
        peer_port=None,
    )
    return replace(instance, **changes)  # type: ignore[arg-type]


def environ(hub: FakeHub, folder: Path) -> dict[str, str]:
    """The same for an agent in a process of its own."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "TRAINHUB_HUB_URL": hub.url,
        "TRAINHUB_NODE_TOKEN": "node-token-of-the-tests",
        "TRAINHUB_NODE_NAME": "here",
        "TRAINHUB_NODE_DIR": str(folder),
        "TRAINHUB_NODE_CONTAINERS": place.current.engine,
        "TRAINHUB_NODE_PEER_PORT": "off",
        **place.current.variables,
        "AGENT_SECRET": "must not reach training",
    }


def snapshot(hub: FakeHub, files: Mapping[str, str | bytes]) -> str:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o755 if name.endswith(".sh") else 0o644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return hub.store(buffer.getvalue())


def process(
    rank: int, argv: Sequence[str], *, of: int = 1, decides: bool = True, **env: str | Reference
) -> PlannedProcess:
    name = "70_driver_log.txt" if of == 1 else f"70_driver_log_{rank}.txt"
    always: dict[str, str | Reference] = {
        "TRAINHUB_RUN_ID": Reference("launch", "run_id"),
        "TRAINHUB_ATTEMPT": Reference("launch", "attempt"),
        "TRAINHUB_TOKEN": Reference("launch", "token"),
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": Reference("launch", "node_dir"),
        "RANK": str(rank),
    }
    return PlannedProcess(
        rank=rank,
        local_rank=rank,
        node_rank=0,
        role="worker",
        log_name=name,
        argv=tuple(argv),
        env=always | env,
        decides=decides,
    )


def order(
    hub: FakeHub,
    files: Mapping[str, str | bytes],
    *processes: PlannedProcess,
    run: str = "",
    attempt: int = 1,
    environment: EnvironmentSpec | None = None,
    launcher: Sequence[str] = (),
    grace_s: int = 10,
    timeout_s: int | None = None,
    values: Mapping[str, str] | None = None,
    person: str | None = None,
) -> NodeOrder:
    run = run or uuid.uuid4().hex
    sha256 = snapshot(hub, files)
    existing = {
        "launch:run_id": run,
        "launch:attempt": str(attempt),
        "launch:token": "run-token",
        "launch:url": hub.url,
    }
    return NodeOrder(
        run=run,
        attempt=attempt,
        environment=environment or place.current.environment,
        snapshot=sha256,
        snapshot_size=len(hub.blobs[sha256]),
        command=NodeCommand(
            node="here", node_rank=0, address="127.0.0.1", processes=processes, launcher=tuple(launcher)
        ),
        values=existing | dict(values or {}),
        masked=("run-token",),
        timeout_s=timeout_s,
        grace_s=grace_s,
        person=person,
    )


def script(
    hub: FakeHub, code: str, *, ranks: int = 1, arguments: Sequence[str] = (), **options: object
) -> NodeOrder:
    """An order that runs `code` as train.py, once per rank."""
    processes = [process(rank, ("python", "train.py", *arguments), of=ranks) for rank in range(ranks)]
    return order(hub, {"train.py": code}, *processes, **options)  # type: ignore[arg-type]
