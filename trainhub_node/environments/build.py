"""Builds a cached virtual environment under its lock, and marks it complete as the last step.

The wheels of a lock are installed by `uv_install`. What may run code of packages is built as follows. With
`RUN_AS` a throwaway account builds the environment, at its final path, because virtual environments
contain their own path. Then the builder's processes are killed, and its tree is copied into a new one of
root's at that path: no descriptor that a builder or a run kept open leads into it. Without `RUN_AS` the
agent's account builds it, in namespaces of the build's own where runs have such."""

from __future__ import annotations

import fcntl
import os
import time

from trainhub_launch.json_types import JsonObject
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_node import records
from trainhub_node.environments import builder_account as builders
from trainhub_node.environments import interpreter, pip, uv_install
from trainhub_node.environments.build_process import FULL_DISK
from trainhub_node.environments.conda import conda_build
from trainhub_node.environments.tree_copy import TreeCopy
from trainhub_node.supervisor import separation
from trainhub_node.supervisor.gang import Gang, PreparationFailed
from trainhub_node.untrusted import removal

TYPE_CHECKING = False

LOCK_RETRY_S = 0.1
_BUILDS = {"venv": pip.VenvBuild, "conda": conda_build.CondaBuild}


def build(gang: Gang) -> None:
    """Sets the run's interpreter. Raises PreparationFailed, and StopRequested when a stop request arrives."""
    spec = gang.order["environment"]
    folder = interpreter.environment_folder(gang)
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    gang.locks.append(lock)
    is_waiting = False
    while not gang.python:
        lock_mode = fcntl.LOCK_SH if interpreter.is_built(folder) else fcntl.LOCK_EX
        if not interpreter.try_lock(lock, lock_mode):
            if not is_waiting:
                gang.log(f"Waiting for another run on this node that is building {spec['name']}.")
            is_waiting = True
            gang.check_stop()
            time.sleep(LOCK_RETRY_S)
        elif lock_mode == fcntl.LOCK_EX and not interpreter.is_built(folder):
            _build(gang, spec, folder)
        # Changing the lock from exclusive to shared is not atomic: the environment may have been removed in
        # between.
        elif lock_mode == fcntl.LOCK_SH and interpreter.is_built(folder):
            if interpreter.is_build_order(gang) and interpreter.is_uncompiled(folder):
                uv_install.compile_rest(gang, folder)
            gang.python = interpreter.use_environment(gang, folder)


def _build(gang: Gang, spec: JsonObject, folder: str) -> None:
    gang.log(f"Building the environment {spec['name']} {spec['version']}; see {ENVIRONMENT_LOG}.")
    started = time.monotonic()
    python = str(spec["python"] or gang.terms["python"])
    interpreter.discard_environment(folder)
    try:
        if uv_install.can_install(gang):
            uv_install.install(gang, spec, python, folder)
        elif gang.terms["account"] is None:
            _build_in_place(gang, spec, python, folder).finish(folder)
        else:
            _build_as_builder(gang, spec, python, folder).finish(folder)
        # Written by this process after the copy, which leaves out a marker that the builder may have made.
        os.close(
            os.open(
                f"{folder}/{interpreter.MARKER}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644
            )
        )
    except OSError as error:
        interpreter.discard_environment(folder)
        reason = FULL_DISK if error.errno in records.DISK_FULL else error.strerror or error
        raise PreparationFailed(
            "environment", f"The environment could not be built on this node: {reason}."
        ) from error
    except BaseException:
        interpreter.discard_environment(folder)
        raise
    gang.log(f"The environment was built in {time.monotonic() - started:.0f} s.")


def _build_in_place(gang: Gang, spec: JsonObject, python: str, folder: str) -> pip.VenvBuild:
    scratch = interpreter.sibling(folder, interpreter.SCRATCH)
    for path in (folder, scratch):
        os.mkdir(path, 0o755)
    spaces = separation.separate_build(gang, folder, scratch)
    try:
        build = _BUILDS[str(spec["kind"])](gang, folder, scratch, builder=None, namespaces=spaces)
        build.run(spec, python)
    finally:
        if spaces is not None:
            spaces.end()
    removal.remove_tree(scratch)
    return build


def _build_as_builder(gang: Gang, spec: JsonObject, python: str, folder: str) -> pip.VenvBuild:
    scratch, built, fresh = (interpreter.sibling(folder, suffix) for suffix in interpreter.SUFFIXES)
    with builders.reserve_uid(gang.terms["environments"], excluded=gang.terms["account"]["uid"]) as number:
        for path in (folder, scratch):
            os.mkdir(path, 0o700)
            os.chown(path, number, number)
        try:
            build = _BUILDS[str(spec["kind"])](gang, folder, scratch, builder=number)
            build.run(spec, python)
        finally:
            builders.kill_processes(number)
        # The builder has no process left. Its tree is only read from here on, and never trusted.
        removal.remove_tree(scratch)
        os.rename(folder, built)
        copy = TreeCopy(
            owner=number,
            python=python,
            final=folder,
            excluded=interpreter.MARKER,
            check=gang.check_stop,
            warn=build.write,
        )
        copy.copy(built, fresh)
        os.rename(fresh, folder)
        removal.remove_tree(built)
        return build
