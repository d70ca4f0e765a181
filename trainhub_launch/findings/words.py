"""The words of a spec's command line, each with its field in the spec."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.processes.launchers import PER_NODE, launcher
from trainhub_launch.spec import RunSpec


@dataclass(frozen=True)
class Option:
    """An option `--name value` or `--name=value` of the command line. `field` is the JSON path of the
    name."""

    field: str
    name: str
    value: str

    @property
    def number(self) -> int | None:
        return int(self.value) if self.value.isdecimal() else None


def words(spec: RunSpec) -> list[tuple[str, str]]:
    """Returns (field, word) of each word that the user wrote after the script, or of the whole command."""
    name, line = ("command", spec.command) if spec.command else ("arguments", spec.arguments)
    return [(f"{name}[{index}]", word) for index, word in enumerate(line)]


def options(spec: RunSpec) -> list[Option]:
    """Returns every option on the command line. An underscore in a name is returned as a dash."""
    line = words(spec)
    result = []
    for index, (field, word) in enumerate(line):
        if not word.startswith("--") or word == "--":
            continue
        name, equals, value = word.partition("=")
        # Only a word with two dashes ends the value, because a negative number such as -1 is a value.
        follows = line[index + 1][1] if index + 1 < len(line) else ""
        result.append(
            Option(field, name.replace("_", "-"), value if equals or follows.startswith("--") else follows)
        )
    return result


def option(spec: RunSpec, *names: str) -> Option | None:
    return next((item for item in options(spec) if item.name in names), None)


def per_node_launcher(spec: RunSpec) -> str:
    """Returns the name of the user's launcher if it starts the processes of one node (such as torchrun), or
    ""."""
    program = launcher(spec.command)
    return PER_NODE.get(program.program, "") if program else ""


def looks_like_lightning(spec: RunSpec) -> bool:
    names = {item.name for item in options(spec)}
    return bool(names & {"--num-nodes", "--devices", "--gpus"}) and bool(
        names & {"--strategy", "--accelerator", "--max-epochs"}
    )


def looks_like_transformers(spec: RunSpec) -> bool:
    names = {item.name for item in options(spec)}
    model_or_training = {
        "--model-name-or-path",
        "--do-train",
        "--per-device-train-batch-size",
        "--num-train-epochs",
    }
    return "--output-dir" in names and bool(names & model_or_training)
