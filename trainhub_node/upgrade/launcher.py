"""The start of the agent: becomes the program that the node runs, and tries a new one first.

This is the code of the installed package, also when later programs run, so it does as little as possible."""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from trainhub_node.upgrade.installation import SELF, package_identity
from trainhub_node.upgrade.program_record import ProgramRecord, programs_folder, read_record, write_record
from trainhub_node.upgrade.program_trial import ProgramTrial
from trainhub_node.upgrade.programs import has_program, own_name

log = logging.getLogger(__name__)
# How the agent was started: {"argv", "pythonpath"}, for a program that restarts it.
LAUNCHED = "TRAINHUB_NODE_LAUNCHED"
PYTHONPATH = "PYTHONPATH"
MAX_DESCRIPTORS = 2**20


def enter_program(node_folder: Path, way: str) -> None:
    """Becomes the program that this node runs, and returns if that is this one. `way`: see upgrade_way.

    Raises OSError if a new program was to be tried and the outcome cannot be written."""
    folder = programs_folder(node_folder)
    if LAUNCHED in os.environ:
        _set_python_path(os.environ, json.loads(os.environ[LAUNCHED])["pythonpath"])
        return
    if way != SELF or not folder.is_dir() or own_name(folder):
        return
    record = _without_outdated(folder, read_record(folder))
    if record.trial:
        variables = _variables(folder / record.trial)
        record = ProgramTrial(folder, record, _command(), variables).run()
    if record.current and has_program(folder, record.current):
        os.execve(sys.executable, _command(), _variables(folder / record.current))
    if record.current:
        log.error("The program %s is not whole, so the installed package runs", folder / record.current)


def restart() -> NoReturn:
    """Starts the agent anew in this process, as it was started at first. Its runs go on. Raises OSError."""
    env = dict(os.environ)
    argv = [sys.executable, *sys.orig_argv[1:]]
    launched = env.pop(LAUNCHED, None)
    if launched is not None:
        argv = json.loads(launched)["argv"]
    # Libraries may have opened some that the next program would inherit.
    os.closerange(3, MAX_DESCRIPTORS)
    os.execve(argv[0], argv, env)


def _without_outdated(folder: Path, record: ProgramRecord) -> ProgramRecord:
    """Returns the record without programs that were chosen for another package: whoever has installed one by
    hand since then wants that one."""
    if record.installed == package_identity() or not (record.current or record.trial):
        return record
    log.warning("Another package was installed, so it runs in place of %s", record.current or record.trial)
    if record.trial:
        record = record.with_failure("Another package was installed on the node meanwhile.")
    record = replace(record, installed=package_identity(), current="", previous="")
    write_record(folder, record)
    return record


def _command() -> list[str]:
    # -P: nothing of the working directory comes before the program.
    return [sys.executable, "-P", "-m", "trainhub_node", *sys.argv[1:]]


def _variables(program: Path) -> dict[str, str]:
    original = os.environ.get(PYTHONPATH)
    launched = {"argv": [sys.executable, *sys.orig_argv[1:]], "pythonpath": original}
    path = f"{program}:{original}" if original else str(program)
    return {**os.environ, PYTHONPATH: path, LAUNCHED: json.dumps(launched)}


def _set_python_path(env: os._Environ[str], value: str | None) -> None:
    """Runs and other programs need not know where the agent's code is."""
    if value is None:
        env.pop(PYTHONPATH, None)
    else:
        env[PYTHONPATH] = value
