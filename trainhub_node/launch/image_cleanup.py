"""Removes images from the container engine that this agent has pulled and that no order has used for long.

Only those: an image that was there before, or that has got a tag or another name since, is somebody else's.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
from pathlib import Path

from trainhub_node import records
from trainhub_node.containers.engine import Engine
from trainhub_node.environments.images import PULLED, RECORD
from trainhub_node.launch.engine_process import run_engine

log = logging.getLogger(__name__)
TIMEOUT_S = 600


def remove_unused_images(engine: Engine, environments: Path, *, unused_since: float) -> list[str]:
    """Removes the images whose last use, as their records in `environments` say, was before that time (Unix
    seconds). Returns their names. One that stays, because a container uses it or it is not ours alone, counts
    as used now."""
    removed = []
    for path in sorted(environments.glob(f"*{RECORD}")):
        if path.stat().st_mtime >= unused_since:
            continue
        mark = (records.read(str(path)) or {}).get(PULLED)
        if not isinstance(mark, list) or len(mark) != 2 or mark[0] != engine.name:
            continue
        name = str(mark[1])
        if _is_ours(engine, name) and _remove_image(engine, name):
            # Without the record the next order looks for the image anew.
            path.unlink()
            removed.append(name)
            log.info("Removed an image that no order has used for long: %s", name)
        else:
            os.utime(path)
    return removed


def _is_ours(engine: Engine, name: str) -> bool:
    """Returns whether the engine has the image under no other name than the one by which it was pulled."""
    done = _call(engine, "image", "inspect", "--format={{json .RepoTags}} {{json .RepoDigests}}", name)
    if done is None or done.returncode:
        return False
    tags, _, digests = done.stdout.strip().partition(" ")
    repository = name.partition("@")[0]
    names = json.loads(digests) or ()
    return not json.loads(tags) and all(other.partition("@")[0] == repository for other in names)


def _remove_image(engine: Engine, name: str) -> bool:
    done = _call(engine, "image", "rm", name)
    if done is not None and done.returncode:
        log.info("The image %s stays: %s", name, done.stderr.strip()[-300:])
    return done is not None and done.returncode == 0


def _call(engine: Engine, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    return run_engine(engine, [engine.program, *arguments], timeout_s=TIMEOUT_S)
