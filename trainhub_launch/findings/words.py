"""The words of a spec's command line, each with the field it stands in."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.processes.launchers import PER_NODE, launcher
from trainhub_launch.spec import RunSpec


@dataclass(frozen=True)
class Option:
    """`--name value` or `--name=value` as written; `field` is where the name stands."""

    field: str
    name: str
    value: str

    @property
    def number(self) -> int | None:
        return int(self.value) if self.value.isdecimal() else None


def words(spec: RunSpec) -> list[tuple[str, str]]:
    """(field, word) of everything the user wrote after the script, or of the whole command."""
    name, line = ("command", spec.command) if spec.command else ("arguments", spec.arguments)
    return [(f"{name}[{index}]", word) for index, word in enumerate(line)]


def options(spec: RunSpec) -> list[Option]:
    """Every option on the command line; '_' in a name counts as '-'."""
    line = words(spec)
    found = []
    for index, (field, word) in enumerate(line):
        if not word.startswith("--") or word == "--":
            continue
        name, equals, value = word.partition("=")
        follows = line[index + 1][1] if index + 1 < len(line) else ""
        found.append(
            Option(field, name.replace("_", "-"), value if equals or follows.startswith("--") else follows)
        )
    return found


def option(spec: RunSpec, *names: str) -> Option | None:
    return next((found for found in options(spec) if found.name in names), None)


def per_node_launcher(spec: RunSpec) -> str:
    """What the user's own launcher of one node's processes is called, or ""."""
    found = launcher(spec.command)
    return PER_NODE.get(found.program, "") if found else ""


def looks_like_lightning(spec: RunSpec) -> bool:
    names = {found.name for found in options(spec)}
    return bool(names & {"--num-nodes", "--devices", "--gpus"}) and bool(
        names & {"--strategy", "--accelerator", "--max-epochs"}
    )


def looks_like_transformers(spec: RunSpec) -> bool:
    names = {found.name for found in options(spec)}
    model_or_training = {
        "--model-name-or-path",
        "--do-train",
        "--per-device-train-batch-size",
        "--num-train-epochs",
    }
    return "--output-dir" in names and bool(names & model_or_training)
