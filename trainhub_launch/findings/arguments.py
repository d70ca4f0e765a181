"""Finds arguments that will be interpreted differently from what the user probably intended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.words import option, options, words
from trainhub_launch.spec import RunSpec

_SHELL_WORDS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1", "2>", "&>"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_PORT_OPTIONS = (
    "--master-port",
    "--main-process-port",
    "--dist-port",
    "--rdzv-endpoint",
    "--dist-url",
    "--init-method",
)
# 6105 is TrainHub's first choice for MASTER_PORT, and 29500 the default of torchrun and init_process_group.
_FIXED_PORT = re.compile(r"(^|:)(6105|29500)$")


def arguments(spec: RunSpec, *, sets_master: bool) -> Iterator[Finding]:
    """Yields findings about arguments and command. `sets_master`: every process has MASTER_ADDR and
    MASTER_PORT."""
    yield from _one_string(spec)
    yield from _shell_syntax(spec)
    yield from _fixed_port(spec, sets_master=sets_master)
    yield from _outputs_elsewhere(spec)


def _one_string(spec: RunSpec) -> Iterator[Finding]:
    if not spec.command:
        return
    if not spec.command[0].strip():
        yield Finding("error", "command[0]", "is the program to run and must not be empty")
    elif len(spec.command) == 1 and " " in spec.command[0].strip():
        yield Finding(
            "error",
            "command[0]",
            "is one program name with spaces in it; a command is a list with one item for each word, "
            'as in ["python", "train.py", "--epochs", "50"]',
        )


def _shell_syntax(spec: RunSpec) -> Iterator[Finding]:
    for field, word in words(spec):
        if word in _SHELL_WORDS:
            yield Finding(
                "warning", field, f"no shell reads the command: {word!r} is passed on as an argument"
            )
        elif ("$(" in word or "`" in word) and not _is_shell(spec):
            yield Finding(
                "hint", field, "no shell reads the command: $(…) and backquotes are passed on unchanged"
            )
        elif word.startswith("~/"):
            yield Finding("hint", field, "no shell reads the command: write $HOME instead of ~")


def _is_shell(spec: RunSpec) -> bool:
    # For a command that starts a shell, `$(…)` and backquotes in its script are legitimate.
    return bool(spec.command) and PurePosixPath(spec.command[0]).name in _SHELLS


def _fixed_port(spec: RunSpec, *, sets_master: bool) -> Iterator[Finding]:
    for item in options(spec):
        if item.name in _PORT_OPTIONS and _FIXED_PORT.search(item.value):
            remedy = "use $MASTER_PORT, which is free on the head node" if sets_master else "leave it out"
            yield Finding(
                "hint", item.field, f"a fixed port clashes with the next run on the same node; {remedy}"
            )


def _outputs_elsewhere(spec: RunSpec) -> Iterator[Finding]:
    match = option(spec, "--output-dir", "--out-dir", "--save-dir")
    # A value with a reference is only known on the node, so it cannot be judged here.
    if match is None or not match.value or "$" in match.value:
        return
    folder = PurePosixPath(match.value)
    if folder.is_absolute() or folder.parts[:1] not in (("outputs",), ("logs",)):
        yield Finding(
            "hint",
            match.field,
            f"only ./outputs is kept with the run, and {match.value} is not in it; use outputs/…",
        )
