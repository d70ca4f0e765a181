"""The commands of the isolated processes: the agent starts the child, mpirun starts a rank's wrapper."""

from __future__ import annotations

import shutil
from pathlib import Path

import trainhub_launch
from trainhub_node.bootstrap_command import AGENT_WRAPPER, PACKAGE, PYTHON_OPTIONS
from trainhub_node.run_account import can_execute
from trainhub_node.settings import NodeSettings, SettingsError
from trainhub_node.untrusted import ancestors

PACKAGES = (Path(trainhub_launch.__file__).parent, PACKAGE)


def wrapper_argv(settings: NodeSettings) -> list[str]:
    """Returns the command of the wrapper that mpirun starts under the account of the ranks.

    That account may not be able to read the agent's installation. So it has a copy, run by an interpreter
    that it may execute."""
    if settings.run_as is None:
        return list(AGENT_WRAPPER)
    return [
        settings.python,
        *PYTHON_OPTIONS,
        str(settings.folder / "wrapper" / PACKAGE.name / "bootstrap.py"),
    ]


def check_folders(settings: NodeSettings) -> None:
    """Raises SettingsError if the account of the runs controls a parent of one of the agent's folders."""
    if settings.run_as is None:
        return
    for name, folder in (("TRAINHUB_NODE_DIR", settings.folder), ("TRAINHUB_NODE_CACHE", settings.cache)):
        unsafe = ancestors.controlled_by(settings.run_as, folder)
        if unsafe is not None:
            raise SettingsError(
                f"the account {settings.run_as.name} (TRAINHUB_NODE_RUN_AS) can change what is in "
                f"{unsafe}, so its runs "
                f"could exchange {folder} ({name}) for a folder of their own; put it where only root may "
                "write, like /var/lib"
            )


def install_wrapper(settings: NodeSettings) -> None:
    """Copies the sitecustomize and the hub's CA to where ranks can read them, and the wrapper for an account
    of their own.

    Raises SettingsError when that account cannot reach them."""
    settings.sites.mkdir(exist_ok=True)
    settings.sites.chmod(0o755)
    _copy(PACKAGE / "sitecustomize" / "sitecustomize.py", settings.sites / "sitecustomize.py")
    if settings.hub_ca is not None:
        _copy(settings.hub_ca, settings.rank_ca)
    if settings.run_as is None:
        return
    for package in PACKAGES:
        _copy_package(package, settings.folder / "wrapper" / package.name)
    for folder in (settings.sites, settings.environments):
        if not can_execute(str(folder), settings.run_as):
            raise SettingsError(
                f"the account {settings.run_as.name} (TRAINHUB_NODE_RUN_AS) cannot enter {folder}; put "
                "TRAINHUB_NODE_DIR "
                "and TRAINHUB_NODE_CACHE below folders that everybody may pass through, like /var/lib"
            )


def _copy_package(package: Path, to: Path) -> None:
    for file in package.rglob("*.py"):
        target = to / file.relative_to(package)
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(file, target)
    for folder in (to.parent, to, *(path for path in to.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def _copy(file: Path, to: Path) -> None:
    aside = to.with_suffix(".new")
    # A rename replaces a file at once: a wrapper that starts meanwhile sees the old one or the new one.
    shutil.copyfile(file, aside)
    aside.chmod(0o644)
    aside.replace(to)
