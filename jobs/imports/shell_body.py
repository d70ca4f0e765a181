"""What a script of another launcher runs: which lines only prepare what TrainHub does itself, and which line
is the command of each process."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace

from jobs.exports.node_script import RANK_FUNCTION
from jobs.exports.note import Outcome
from jobs.exports.shell_words import split_words
from jobs.imports.draft import ImportDraft, ShellBody
from jobs.imports.task_fields import put_secret
from trainhub_launch.expand import literal, references

_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_NAMES = re.compile(r"\$\{?#?([A-Za-z_][A-Za-z0-9_]*)")
_ENVIRONMENT = re.compile(
    r"(?:module|ml|conda|mamba|micromamba|source|\.(?=\s)|eval|pip|pip3|uv|apt-get|apt|spack)(?:\s|$)"
)
_PRINTS = re.compile(r"(?:echo|printf|date|hostname|nvidia-smi|env|pwd|ls|nvcc|which)(?:\s|$)")
_PREPARES = re.compile(r"(?:set|ulimit|wait)(?:\s|$)")
_ONLY_PRINTS = "only prints, and is left out"
_HERE = re.compile(r"cd\s+(?:\.|\"?\$\{?(?:SLURM_SUBMIT_DIR|PWD)\}?\"?)\s*\Z")
_EXPORT = re.compile(r"export((?:\s+[A-Za-z_][A-Za-z0-9_]*)+)\s*\Z")
# What exports of TrainHub begin with: a value that somebody has to set.
_REQUIRED = re.compile(r': "\$\{([A-Za-z_][A-Za-z0-9_]*):\?')
# The function in which exports of TrainHub have the command of each process.
_FUNCTION = "start_rank() {"
_LONGEST_FUNCTION = 20
# TrainHub sets these for each process.
OWN_NAMES = frozenset(
    {
        "MASTER_ADDR",
        "MASTER_PORT",
        "WORLD_SIZE",
        "RANK",
        "LOCAL_RANK",
        "NODE_RANK",
        "LOCAL_WORLD_SIZE",
        "TF_CONFIG",
        "CUDA_VISIBLE_DEVICES",
    }
)


@dataclass(frozen=True)
class ShellDialect:
    """The variables of one launcher. `renames`: those that TrainHub has under another name; `values`: those
    that are the same for all processes; `addresses`: texts of which one stands in each line that looks for
    addresses of nodes."""

    renames: Mapping[str, str]
    addresses: tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BodyCommands:
    """`words`: of the only command, as a spec writes them, None if only a shell understands it; `lines`: what
    is left of the script."""

    words: list[str] | None
    lines: list[tuple[int, str]]
    variables: dict[str, str]


def read_commands(
    draft: ImportDraft, dialect: ShellDialect, strip: Callable[[str], str] = str.strip
) -> BodyCommands:
    """Returns what the body of a draft runs, with notes on all other lines. `strip`: removes from a line what
    starts processes, as srun does."""
    addresses: set[str] = set()
    commands: list[tuple[int, str]] = []
    variables: dict[str, str] = {}
    printing: list[tuple[int, str]] = []
    for number, line in _logical_lines(draft.body):
        if required := _REQUIRED.match(line):
            if required[1].startswith("TRAINHUB_"):
                message = f"{required[1]} is the place of an input: name a datastore or a dataset in inputs"
                draft.refuse(required[1], message, number)
            else:
                put_secret(draft, required[1], required[1], number)
            continue
        kind = _plumbing(line, dialect, variables, addresses)
        if kind == _ONLY_PRINTS:
            printing.append((number, line))
            continue
        if kind:
            outcome = Outcome.CHANGED if kind.startswith("TrainHub") else Outcome.NONE
            draft.note(draft.body.field, outcome, f"{line[:60]!r}: {kind}", number)
            continue
        assigned = {} if commands else _variables(line)
        variables |= assigned
        for name, value in assigned.items():
            draft.put(("environment_variables", name), value, name, number)
        if assigned:
            continue
        commands.append((number, strip(line)))
    if not commands and printing:
        # People try a cluster with `nvidia-smi` or the like.
        number, line = printing.pop()
        commands.append((number, strip(line)))
    for number, line in printing:
        draft.note(draft.body.field, Outcome.NONE, f"{line[:60]!r}: {_ONLY_PRINTS}", number)
    names = dict(dialect.renames) | dict.fromkeys(addresses, "MASTER_ADDR")
    words = None
    if len(commands) == 1:
        words = split_words(commands[0][1])
    if words is not None:
        words = [_renamed(word, names, dialect.values) for word in words]
    return BodyCommands(words, commands, variables)


def shell_command(commands: BodyCommands, dialect: ShellDialect) -> list[str]:
    """Returns the lines as a command for a shell, which gets the launcher's variables under their own
    names."""
    text = "\n".join(line for _, line in commands.lines)
    names = set(_NAMES.findall(text))
    lines = [f'export {theirs}="${ours}"' for theirs, ours in dialect.renames.items() if theirs in names]
    lines += [f"export {name}={value}" for name, value in dialect.values.items() if name in names]
    return ["bash", "-c", literal("\n".join([*lines, text]))]


def _logical_lines(body: ShellBody) -> Iterator[tuple[int, str]]:
    """Yields the lines without comments; one that ends with a backslash together with the next ones."""
    begin, text = 0, ""
    for number, line in _without_function(body).lines:
        begin = begin or number
        text += line.strip()
        if text.endswith("\\"):
            text = f"{text[:-1].rstrip()} "
            continue
        if text and not text.startswith("#"):
            yield begin, text
        begin, text = 0, ""
    if text:
        yield begin, text


def _without_function(body: ShellBody) -> ShellBody:
    """Returns the body with the command in place of the function that holds it, on lines of the same
    numbers."""
    lines = body.text.split("\n")
    start = lines.index(_FUNCTION) if _FUNCTION in lines else len(lines)
    function = [line.strip() for line in lines[start : start + _LONGEST_FUNCTION]]
    if "}" not in function:
        return body
    end = start + function.index("}")
    command = lines[end - 1].strip()
    if not command.startswith("exec "):
        return body
    lines[start : end + 1] = [""] * (end + 1 - start)
    return replace(body, text="\n".join(lines).replace(RANK_FUNCTION, command.removeprefix("exec ")))


def _plumbing(line: str, dialect: ShellDialect, earlier: Container[str], addresses: set[str]) -> str:
    """Returns why a line is left out, "" if it is not. `earlier`: variables that were set before; `addresses`
    gets those that hold addresses of nodes."""
    if _HERE.match(line):
        return "TrainHub starts processes in the folder of the code"
    if _ENVIRONMENT.match(line):
        return "packages come from an environment: choose one that has them"
    is_alone = not re.search(r"[|>&;]", line)
    if _PRINTS.match(line) and is_alone:
        return _ONLY_PRINTS
    if _PREPARES.match(line) and is_alone:
        return "only prepares, and is left out"
    if "TRAINHUB_" in line and line.startswith(("export ", "mkdir ")):
        return "TrainHub sets its own variables itself"
    if (export := _EXPORT.match(line)) and all(
        name in OWN_NAMES or name in earlier or name in addresses for name in export[1].split()
    ):
        return "TrainHub passes all variables on"
    assignment = _ASSIGNMENT.match(line)
    if assignment is None:
        return ""
    name, value = assignment.groups()
    names = set(_NAMES.findall(value))
    if name.startswith(("SRUN_", "SLURM_")):
        return "is only for srun"
    if name in OWN_NAMES:
        return f"TrainHub sets {name} itself"
    if any(text in value for text in dialect.addresses) or names & addresses:
        addresses.add(name)
        return f"TrainHub gives the address of the first node as MASTER_ADDR, which stands for {name}"
    return ""


def _variables(line: str) -> dict[str, str]:
    """Returns the variables of a line of plain assignments, none for anything else."""
    words = split_words(line.removeprefix("export ").strip()) if _ASSIGNMENT.match(line) else None
    if not words or any(references(word) or not _ASSIGNMENT.match(word) for word in words):
        return {}
    if len(words) > 1 and not line.startswith("export "):
        return {}
    pairs = (word.partition("=") for word in words)
    return {name: value.replace("$$", "$") for name, _, value in pairs}


def _renamed(word: str, names: Mapping[str, str], values: Mapping[str, str]) -> str:
    """Returns a word of a spec with the variables of another launcher under the names of TrainHub."""

    def rename(match: re.Match[str]) -> str:
        name = match[2] or match[3] or ""
        if match[1] or not name:
            return match[0]
        if name in values:
            return values[name]
        return f"${{{names[name]}}}" if name in names else match[0]

    return re.sub(r"(\$\$)|\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})", rename, word)
