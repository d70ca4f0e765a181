"""Whether the hub can submit as Unix accounts: asked on the machine that has Slurm's commands."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence

from clusters.allocations import partitions
from clusters.allocations.bounded_commands import BoundedCommands
from clusters.backends.slurm import login_wrapper
from clusters.backends.slurm.errors import SlurmError, SlurmFault, one_line
from clusters.backends.slurm.examination import CheckResult, SlurmCheck
from clusters.models import SlurmPartition

_UNREADABLE = "trainhub-login on the login node gave an answer that is none of its own: {}"


def problems_here(names: Sequence[str]) -> dict[str, str]:
    """Returns why the hub cannot submit as each account, "" if it can."""
    return {name: _problem_here(name) for name in names}


def problems_on_login_node(
    row: SlurmPartition, names: Sequence[str]
) -> tuple[list[SlurmCheck], dict[str, str]]:
    """Returns the check of the login, and why the hub cannot submit as each account, "" if it can. Raises
    SlurmError."""
    commands = BoundedCommands(partitions.commands_as(row))
    head, *lines = commands.run(["check", *names]).splitlines() or [""]
    name, _, version = head.partition(" ")
    problems = dict(line.partition("\t")[::2] for line in lines)
    if name != login_wrapper.NAME or not set(names) <= set(problems):
        raise SlurmError(SlurmFault.UNREADABLE, _UNREADABLE.format(one_line(head)))
    where = row.command_host
    check = SlurmCheck("login", CheckResult.OK, f"{where} lets TrainHub in, and trainhub-login answers.")
    if version != str(login_wrapper.VERSION):
        check = SlurmCheck(
            "login",
            CheckResult.WARNING,
            f"trainhub-login on {where} is of another version. Copy the file below there.",
        )
    return [check], {name: _sentence(problems[name], row) for name in names}


def _sentence(problem: str, row: SlurmPartition) -> str:
    if not problem:
        return ""
    host = partitions.login_host(row)
    where = host.name if host else row.command_host
    return f"The login node {where} refuses: {problem}."


def _problem_here(name: str) -> str:
    try:
        person = pwd.getpwnam(name)
    except KeyError:
        return f"The hub's machine has no account {name}: make it, or enter another one."
    if person.pw_uid == 0:
        return f"The account {name} is root's, and nothing of a person runs as root: enter another one."
    if os.geteuid() not in (0, person.pw_uid):
        return (
            f"The hub does not run as root, so it cannot submit as {name}: start it with RUN_AS=root, or let "
            "it use a login node."
        )
    return ""
