"""Whether runs of this node can have containers: which engine there is, and what a trial of it says."""

from __future__ import annotations

import io
import logging
import os
import platform
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from trainhub_launch.machine import CONTAINERS, IMAGE_BUILDS
from trainhub_node import records
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.containers import discovery
from trainhub_node.containers.engine import DOCKER, OFF, PODMAN, UNSHARE, Engine
from trainhub_node.containers.trial import REQUEST
from trainhub_node.settings import NodeSettings
from trainhub_node.untrusted import removal

log = logging.getLogger(__name__)
TIMEOUT_S = 120
VERSION_TIMEOUT_S = 20
MAX_REASON = 700
PREFIX = ".container-trial-"
# How many there may be; a kernel without any has no such file.
USER_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
# Folders that engines want to find in an image.
IMAGE_FOLDERS = ("dev", "etc", "proc", "run", "sys", "tmp", "var", "var/tmp")
INSTALL = "install podman, runc and catatonit there (or docker.io and catatonit)"
NUMBERS = "install uidmap, and give the agent's account numbers in /etc/subuid and /etc/subgid"
# What engines say -> what to do about it.
REMEDIES = {
    "rlimit_nofile": (
        'set default_ulimits = ["nofile=1024:1024"] under [containers] in /etc/containers/containers.conf to '
        "what the agent's service may have"
    ),
    "newuidmap": NUMBERS,
    "/etc/subuid": NUMBERS,
    "hybrid mode": (
        'install runc, and set runtime = "runc" under [engine] in /etc/containers/containers.conf: crun does '
        "not know the control groups of this machine"
    ),
    "docker daemon": "start its service, docker",
    "user namespaces are enabled": 'take "userns-remap" out of /etc/docker/daemon.json, or use podman',
    "permission denied": (
        "let the agent's account and that account's own group own its home: the numbers of its containers "
        "must pass through it"
    ),
}


@dataclass(frozen=True)
class EngineStatus:
    """`version`: the engine with its version, "" without one. `trouble`: why runs cannot use it, "" if they
    can."""

    version: str = ""
    trouble: str = "not tried yet"

    @property
    def works(self) -> bool:
        return bool(self.version) and not self.trouble

    def __str__(self) -> str:
        """For the page of the node."""
        if self.works:
            return self.version
        return f"{self.version or 'None'}: {self.trouble}"


NOT_TRIED = EngineStatus()


def try_engine(settings: NodeSettings, previous: EngineStatus) -> EngineStatus:
    """Returns what runs can use. An engine that worked before is not tried again until its version
    changes."""
    engine = discovery.find_engine(settings)
    if engine is None:
        return EngineStatus("", _lack(settings))
    version = _version(engine)
    if previous.works and previous.version == version:
        return previous
    trouble = _trouble(settings, engine)
    if trouble:
        log.warning("Runs have no containers on this machine: %s: %s", version, trouble)
    return EngineStatus(version, trouble)


def engine_capabilities(status: EngineStatus) -> tuple[str, ...]:
    """Returns what the engine adds to the capabilities of this node. Images are built with podman in a user
    namespace, by root: only root can give a build mounts that end with it; and for x86-64, which the images
    of runs are for."""
    if not status.works:
        return ()
    can_build = (
        status.version.startswith(PODMAN)
        and os.geteuid() == 0
        and platform.machine() == "x86_64"
        and os.access(UNSHARE, os.X_OK)
        and _allows_user_namespaces()
    )
    return (CONTAINERS, IMAGE_BUILDS) if can_build else (CONTAINERS,)


def _allows_user_namespaces() -> bool:
    return USER_NAMESPACES.exists() and int(USER_NAMESPACES.read_text()) > 0


def _lack(settings: NodeSettings) -> str:
    if settings.engine == OFF:
        return "TRAINHUB_NODE_CONTAINERS=off"
    if next(discovery.installed_engines(settings), None) is None:
        return f"there is no {settings.engine or 'container engine'}; {INSTALL}"
    return f"there is no {discovery.HOLDER}, which keeps containers alive; install that package"


def _version(engine: Engine) -> str:
    """Returns like "podman 4.3.1"."""
    try:
        done = subprocess.run(
            [engine.program, "--version"],
            env=engine.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return engine.name
    words = done.stdout.replace(",", " ").split()
    number = next((word for word in words if word[:1].isdigit()), "")
    return f"{engine.name} {number}".strip()[:64]


def _trouble(settings: NodeSettings, engine: Engine) -> str:
    if engine.name == DOCKER and os.geteuid() != 0:
        return "with docker the agent must be root; use podman"
    reason = _trial(settings, engine)
    remedy = next((text for sign, text in REMEDIES.items() if sign in reason.lower()), "")
    return f"{reason[:MAX_REASON]}; {remedy}" if reason and remedy else reason[:MAX_REASON]


def _trial(settings: NodeSettings, engine: Engine) -> str:
    for left in settings.folder.glob(f"{PREFIX}*"):
        removal.remove_tree(str(left))  # an agent was killed during its trial
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=settings.folder))
    folder.chmod(0o711)
    account = settings.run_as
    uid = os.geteuid() if account is None else account.uid
    try:
        records.write(str(folder / REQUEST), {"engine": engine.to_terms(), "uid": uid}, patient=False)
        (folder / "root.tar").write_bytes(_empty_image())
        done = subprocess.run(
            [*AGENT_WRAPPER, "container-trial", str(folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            env={},
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a trial did not end within {TIMEOUT_S} s"
    finally:
        removal.remove_tree(str(folder))
    lines = (done.stdout or done.stderr).strip().splitlines()
    if done.returncode and not lines:
        return f"a trial ended with code {done.returncode}"
    return lines[-1] if lines else ""


def _empty_image() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in IMAGE_FOLDERS:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
    return buffer.getvalue()
