"""What still runs for a person or a workspace. The app of the runs names here the module that counts and
cancels them, because this floor knows no runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    # Apps name their modules here before the models are loaded.
    from workspaces.models import User, Workspace

# Dotted names of modules with the functions of ActiveWork; looked up when they are needed, because they need
# the models of their apps.
MODULES: list[str] = []


class ActiveWork(Protocol):
    """The functions of a module in MODULES."""

    def count_of_person(self, user: User) -> int:
        """Returns how many runs that `user` submitted have not ended."""

    def count_in_workspace(self, workspace: Workspace) -> int:
        """Returns how many runs of the workspace have not ended."""

    def cancel_of_person(self, user: User, who: User) -> int:
        """Asks in the name of `who` for the end of the runs that `user` submitted; returns how many."""


def active_runs_of(user: User) -> int:
    """Returns how many runs that `user` submitted have not ended."""
    return sum(work.count_of_person(user) for work in _modules())


def active_runs_in(workspace: Workspace) -> int:
    """Returns how many runs of the workspace have not ended."""
    return sum(work.count_in_workspace(workspace) for work in _modules())


def cancel_runs_of(user: User, who: User) -> int:
    """Asks in the name of `who` for the end of the runs that `user` submitted; returns how many there
    were."""
    return sum(work.cancel_of_person(user, who) for work in _modules())


def _modules() -> list[ActiveWork]:
    return [cast("ActiveWork", import_module(name)) for name in MODULES]
