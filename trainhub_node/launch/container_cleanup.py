"""Removes the containers of attempts that are over, and those that no order names."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from trainhub_node import records
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.containers import discovery
from trainhub_node.containers.engine import Engine
from trainhub_node.environments.making import build_folders
from trainhub_node.launch.engine_process import run_engine
from trainhub_node.launch.image_cleanup import remove_unused_images
from trainhub_node.rundir import RunDir
from trainhub_node.settings import NodeSettings

log = logging.getLogger(__name__)
TIMEOUT_S = 60
DAY_S = 86400.0


class ContainerCleaner:
    """Removes containers in a thread of its own."""

    def __init__(self, settings: NodeSettings, attempts: Attempts) -> None:
        self._settings = settings
        self._attempts = attempts
        self._submitted: set[Key] = set()
        self._threads = ThreadPoolExecutor(1, "containers")

    def submit(self, folder: RunDir) -> None:
        """Removes the container of an attempt that is over, if it has one. Called from one thread only;
        repeated calls have no effect."""
        if folder.key in self._submitted:
            return
        self._submitted.add(folder.key)
        terms = (records.read(folder.terms) or {}).get("engine")
        if terms is not None:
            engine = Engine.from_terms(terms)
            self._threads.submit(_remove, engine, [engine.container_name(*folder.key)])

    def sweep(self) -> None:
        """Removes this node's containers and builds of images whose attempts are not tracked: an agent and
        its machine may have ended before they were removed."""
        builds = build_folders.remove_abandoned(
            str(self._settings.image_builds), lambda build: self._attempts.is_tracked((build, 1))
        )
        if builds:
            log.warning("What builds of images have left is removed: %s", ", ".join(builds))
        engine = discovery.find_engine(self._settings)
        if engine is None:
            return
        listed = _call(engine, engine.list_command())
        left = [
            name
            for name in (listed or "").split()
            if (key := engine.key_of(name)) is not None and not self._attempts.is_tracked(key)
        ]
        if left:
            log.warning("Containers of runs that are over are removed: %s", ", ".join(left))
            _remove(engine, left)

    def remove_images(self, now: float) -> None:
        """Removes the images of this agent that no order has used for long."""
        engine = discovery.find_engine(self._settings)
        if engine is not None:
            unused_since = now - self._settings.image_days * DAY_S
            remove_unused_images(engine, self._settings.environments, unused_since=unused_since)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _remove(engine: Engine, containers: Sequence[str]) -> None:
    _call(engine, engine.remove_command(*containers))


def _call(engine: Engine, command: Sequence[str]) -> str | None:
    """Returns what the engine prints; None if it fails, which the next sweep makes up for."""
    done = run_engine(engine, command, timeout_s=TIMEOUT_S)
    if done is not None and done.returncode:
        log.warning("%s %s failed: %s", engine.name, command[1], done.stderr.strip()[-500:])
    return done.stdout if done is not None and not done.returncode else None
