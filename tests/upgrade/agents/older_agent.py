"""Agents of another version than the hub's, made of the present code, and archives with flaws."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from tests.hosts.bench import HostsHub
from tests.hub import PROJECT, eventually
from trainhub_node import __version__

OLDER = "0.0.9"
VERSION = re.compile(r'__version__ = "[^"]+"')
INIT, MAIN = "trainhub_node/__init__.py", "trainhub_node/__main__.py"


def install_older(to: Path, version: str = OLDER) -> Path:
    """Puts the packages of a node of that version into a folder, as `pip install --target` would."""
    for package in ("trainhub_node", "trainhub_launch"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / package, to / package, ignore=ignored, dirs_exist_ok=True)
    init = to / INIT
    init.write_text(VERSION.sub(f'__version__ = "{version}"', init.read_text()))
    return to


def replace_archive(hub: HostsHub, edit: Callable[[str, bytes], bytes | None]) -> None:
    """Has the hub serve, sign and name its archive with files that went through `edit`, which returns None
    for one that is to be missing."""
    (packed,) = _archives(hub)
    whole = hub.data_dir.parent / "whole.tar.gz"
    if not whole.exists():
        shutil.copy(packed, whole)
    buffer = io.BytesIO()
    with tarfile.open(whole) as old, tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as new:
        for member in old:
            content = old.extractfile(member)
            data = edit(member.name, content.read() if content else b"")
            if data is not None:
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    stem = packed.name.removesuffix(".tar.gz").rpartition("-")[0]
    packed.with_name(f"{stem}-{digest}.tar.gz").write_bytes(buffer.getvalue())
    packed.unlink()


def damage_archive(hub: HostsHub) -> None:
    """Changes the archive on the hub's disk, as somebody would who can write there but has not its key."""
    (packed,) = _archives(hub)
    data = bytearray(packed.read_bytes())
    data[len(data) // 2] ^= 1
    packed.write_bytes(data)


def _archives(hub: HostsHub) -> list[Path]:
    return list((hub.own_folder / "node-programs").glob("node-*.tar.gz"))


def wait_for_version(hub: HostsHub, node: str, version: str = __version__, seconds: float = 60) -> None:
    eventually(lambda: node_of(hub, node)["agent_version"] == version, seconds, f"{node} runs {version}")


def node_of(hub: HostsHub, name: str) -> dict[str, object]:
    with hub.client() as client:
        return dict(client.get(f"/api/v1/nodes/{name}/").raise_for_status().json())
