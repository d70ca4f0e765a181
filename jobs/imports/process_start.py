"""From a command and a layout of processes to script or command, and distribution of a spec."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from jobs.exports.note import Outcome
from jobs.imports.draft import ImportDraft, ProcessLayout
from jobs.imports.shell_body import OWN_NAMES, BodyCommands, ShellDialect, read_commands, shell_command
from trainhub_launch.errors import UnknownVariable
from trainhub_launch.expand import expand, references
from trainhub_launch.plan import BASE_ENVIRONMENT
from trainhub_launch.processes.launchers import HEAD, PER_NODE, launcher

MPI, PYTORCH, TENSORFLOW = "mpi", "pytorch", "tensorflow"
_PYTHON = re.compile(r"(?:.*/)?python[0-9.]*\Z")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_COUNT = ("-np", "-n", "--np", "-c")


def read_body(draft: ImportDraft, dialect: ShellDialect, commands: BodyCommands | None = None) -> None:
    """Adds command and distribution to a draft. `commands`: what its body runs, if that is known already."""
    commands = commands or read_commands(draft, dialect)
    field = draft.body.field
    if not commands.lines:
        draft.refuse(field, "there is no command: name a script or a command in the spec", draft.body.line)
        return
    first, last = commands.lines[0][0], commands.lines[-1][0]
    words = _take_prefix(draft, commands.words, first)
    layout = draft.layout
    if not words:
        where = f"line {first}" if first == last else f"lines {first} to {last}"
        message = f"{where}: go to a shell as they stand, in each process"
        draft.put(("command",), shell_command(commands, dialect), field, first, message)
        draft.layout = layout
        add_distribution(draft, ())
        return
    words = _without_mpirun(draft, words, first)
    _note_unknown_names(draft, words, first)
    for name, value in command_fields(words).items():
        draft.put((name,), value, field, first)
    add_distribution(draft, words)


def command_fields(words: list[str]) -> dict[str, Any]:
    """Returns script and arguments, or command. A script is started by the Python of the environment."""
    if len(words) > 1 and _PYTHON.match(words[0]) and words[1].endswith(".py"):
        try:
            return {"script": expand(words[1], {}), "arguments": words[2:]}
        except UnknownVariable:
            pass
    return {"command": words}


def add_distribution(draft: ImportDraft, words: list[str] | tuple[()]) -> None:
    """Adds the distribution that a layout means for these words."""
    layout = draft.layout
    if layout.starter == TENSORFLOW:
        return
    used = {name for word in words for name in references(word)}
    needs_names = bool(used & OWN_NAMES)
    is_launcher = bool(words) and _program(list(words)) in PER_NODE
    if layout.starter == MPI:
        value: dict[str, Any] = {
            "type": MPI,
            "node_count": layout.nodes,
            "process_count_per_node": layout.per_node or 1,
        }
    elif layout.nodes > 1 or (layout.per_node or 1) > 1 or needs_names or layout.starter == PYTORCH:
        value = {"type": PYTORCH, "node_count": layout.nodes}
        if layout.per_node and not (is_launcher and layout.per_node == 1):
            value["process_count"] = layout.nodes * layout.per_node
    else:
        return
    for name, part in value.items():
        draft.fields[("distribution", name)] = part


def _note_unknown_names(draft: ImportDraft, words: list[str], line: int) -> None:
    own = {path[1] for path in draft.fields if path[0] == "environment_variables"}
    own |= {*OWN_NAMES, *BASE_ENVIRONMENT}
    for name in dict.fromkeys(name for word in words for name in references(word)):
        if name not in own and not name.startswith("TRAINHUB_"):
            message = f"no process of a run has ${name}: set it in environment_variables, or write its value"
            draft.note(draft.body.field, Outcome.NONE, message, line)


def _program(words: list[str]) -> str:
    program = launcher(tuple(words))
    return program.program if program else ""


def _take_prefix(draft: ImportDraft, words: list[str] | None, line: int) -> list[str]:
    """Returns the words behind the variables in front of a program, which become those of the spec."""
    rest = words or []
    count = 0
    while count < len(rest) and _ASSIGNED.match(rest[count]) and not references(rest[count]):
        name, _, value = rest[count].partition("=")
        draft.put(("environment_variables", name), value.replace("$$", "$"), name, line)
        count += 1
    return rest[count:]


def _without_mpirun(draft: ImportDraft, words: list[str], line: int) -> list[str]:
    """Returns the words behind mpirun, which TrainHub starts itself."""
    if _program(words) not in HEAD or PurePosixPath(words[0]).name not in ("mpirun", "mpiexec", "orterun"):
        return words
    plain: list[str] = []
    at = 0
    while at < len(words):
        # The only option of two values.
        is_mca = words[at] in ("--mca", "-mca", "--gmca")
        plain += [] if is_mca else [words[at]]
        at += 3 if is_mca else 1
    program = launcher(tuple(plain))
    if program is None or not program.script:
        return words
    count = next((program.options[name] for name in _COUNT if program.options.get(name, "").isdecimal()), "")
    layout = draft.layout
    per_node = -(-int(count) // layout.nodes) if count and int(count) else layout.per_node or 1
    draft.layout = ProcessLayout(layout.nodes, per_node, MPI)
    draft.note(draft.body.field, Outcome.CHANGED, "TrainHub writes the command of mpirun itself", line)
    return plain[plain.index(program.script) :]
