"""Reads batch scripts of Slurm."""

from __future__ import annotations

import re

from jobs.imports.draft import ImportDraft, ProcessLayout, ShellBody
from jobs.imports.process_start import MPI, PYTORCH, read_body
from jobs.imports.shell_body import ShellDialect, read_commands
from jobs.imports.slurm_options import SlurmOptions, split_options

FIELD = "script"
_SRUN = re.compile(r"srun\s+(.*)", re.DOTALL)
# Up to the first word that is neither an option nor the value of one.
_OPTION = re.compile(r"(--?[A-Za-z][\w-]*)(=(?:\"[^\"]*\"|'[^']*'|\S)*)?\s*")
_WITH_VALUE = frozenset({"-n", "-N", "-c", "-p", "-w", "-t", "-G", "-J", "-o", "-e", "-A", "-m", "-W"})
_VALUED = frozenset(
    {
        "--nodes",
        "--ntasks",
        "--mpi",
        "--cpu-bind",
        "--gpu-bind",
        "--nodelist",
        "--export",
        "--ntasks-per-node",
    }
)


def parse(text: str) -> ImportDraft:
    draft = ImportDraft()
    options = SlurmOptions()
    begin = 0
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("#SBATCH"):
            _read_options(draft, options, line, number, is_ignored=begin > 0)
        elif line.strip() and not line.startswith("#") and not begin:
            begin = number
    options.apply(draft)
    draft.body = ShellBody("\n".join(lines[begin - 1 :] if begin else []), begin or len(lines), FIELD)
    return draft


def add_slurm_command(draft: ImportDraft) -> None:
    starts = SrunStarts(draft)
    dialect = ShellDialect(
        renames={
            "SLURM_PROCID": "RANK",
            "SLURM_LOCALID": "LOCAL_RANK",
            "SLURM_NODEID": "NODE_RANK",
            "SLURM_NTASKS": "WORLD_SIZE",
        },
        addresses=(
            "scontrol",
            "SLURM_JOB_NODELIST",
            "SLURM_NODELIST",
            "SLURM_LAUNCH_NODE_IPADDR",
            "$(hostname",
        ),
        values={
            "SLURM_NNODES": str(draft.layout.nodes),
            "SLURM_JOB_NUM_NODES": str(draft.layout.nodes),
            "SLURM_NTASKS_PER_NODE": str(draft.layout.per_node or 1),
            "SLURM_GPUS_ON_NODE": str(draft.fields.get(("resources", "gpus_per_node"), 0)),
            "SLURM_GPUS_PER_NODE": str(draft.fields.get(("resources", "gpus_per_node"), 0)),
        },
    )
    commands = read_commands(draft, dialect, starts.strip)
    if starts.starter == "" and draft.layout.per_node:
        # Without srun only the first node runs the script, whatever was asked for.
        draft.layout = ProcessLayout(draft.layout.nodes, None)
    elif starts.starter:
        starter = starts.starter if draft.layout.nodes * (draft.layout.per_node or 1) > 1 else ""
        draft.layout = ProcessLayout(draft.layout.nodes, draft.layout.per_node or 1, starter)
    read_body(draft, dialect, commands)


class SrunStarts:
    """Removes srun from lines. `starter`: MPI if one of them asks for it, PYTORCH if not, "" without srun."""

    def __init__(self, draft: ImportDraft) -> None:
        self.starter = ""
        self._draft = draft

    def strip(self, line: str) -> str:
        match = _SRUN.fullmatch(line.strip())
        if match is None:
            return line.strip()
        rest = match[1]
        names = []
        while option := _OPTION.match(rest):
            names.append(option[1] + (option[2] or ""))
            rest = rest[option.end() :]
            if option[2] is None and (option[1] in _WITH_VALUE or option[1] in _VALUED):
                rest = re.sub(r"\A\S+\s*", "", rest)
        self.starter = (
            MPI if self.starter == MPI or any(name.startswith("--mpi") for name in names) else PYTORCH
        )
        return rest


def _read_options(
    draft: ImportDraft, options: SlurmOptions, line: str, number: int, *, is_ignored: bool
) -> None:
    if is_ignored:
        draft.refuse("#SBATCH", "stands behind the first command, where Slurm ignores it", number)
        return
    try:
        for name, value in split_options(line.removeprefix("#SBATCH")):
            options.add(name, value, number)
    except ValueError:
        draft.refuse("#SBATCH", "has a quote without its end, so nothing of the line was read", number)
