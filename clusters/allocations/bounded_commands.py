"""Slurm's commands for whoever waits before a page: each ends within a few seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.backends.slurm.commands import SlurmCommands

PAGE_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class BoundedCommands:
    commands: SlurmCommands

    @property
    def owner(self) -> str:
        return self.commands.owner

    def run(self, argv: Sequence[str], stdin: str = "", timeout_s: float = PAGE_TIMEOUT_S) -> str:
        return self.commands.run(argv, stdin, min(timeout_s, PAGE_TIMEOUT_S))
