"""The Pythons of this machine that a run may use."""

from __future__ import annotations

import glob
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainhub_launch.machine import Interpreter
from trainhub_node.run_account import Account

PRINT_VERSION = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
TIMEOUT_S = 10
_NAME = re.compile(r"python3(\.\d+)?\Z")
_VERSION = re.compile(r"3\.\d+\.\d+\Z")


def find_interpreters(default: str, account: Account | None = None) -> tuple[Interpreter, ...]:
    """Returns `default`, then those on PATH, in /usr/bin and of pyenv and conda. Each real interpreter
    appears once, if it runs."""
    interpreters: dict[Path, Interpreter] = {}
    failed: set[tuple[Path, Path]] = set()
    for path in (default, *_candidates()):
        # Folders hold one under several names, and whether the account may enter differs by folder.
        resolved, folder = Path(path).resolve(), Path(path).parent
        if resolved in interpreters or (folder, resolved) in failed:
            continue
        if version := python_version(path, account):
            interpreters[resolved] = Interpreter(path=path, version=version)
        else:
            failed.add((folder, resolved))
    return tuple(interpreters.values())


def python_version(path: str, account: Account | None = None) -> str:
    """Returns the version of the interpreter at `path`, "" if it does not work for `account`."""
    uid, gid, groups = (None, None, None) if account is None else (account.uid, account.gid, ())
    try:
        result = subprocess.run(
            [path, "-I", "-S", "-c", PRINT_VERSION],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd="/",
            user=uid,
            group=gid,
            extra_groups=groups,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = result.stdout.strip()
    return version if result.returncode == 0 and _VERSION.match(version) else ""


def _candidates() -> Iterator[str]:
    home = Path.home()
    folders = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin", "/usr/local/bin"]
    roots = [os.environ.get("PYENV_ROOT", ""), str(home / ".pyenv")]
    folders += [path for root in roots if root for path in _folders(root, "versions/*/bin")]
    conda = os.environ.get("CONDA_EXE", "")
    bases = [Path(conda).parent.parent] if conda else []
    bases += [home / name for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge")]
    folders += [path for base in bases for path in (str(base / "bin"), *_folders(str(base), "envs/*/bin"))]
    yield from _pythons_in(dict.fromkeys(folder for folder in folders if folder))


def _folders(root: str, pattern: str) -> list[str]:
    """Returns those that this account can see: the variables may name folders of another one, for which
    Path.glob raises."""
    return sorted(glob.glob(f"{glob.escape(root)}/{pattern}"))


def _pythons_in(folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        # pyenv's shims select an interpreter by the folder that they are called from.
        if Path(folder).name == "shims" or os.path.exists(f"{Path(folder).parent}/pyvenv.cfg"):
            continue
        try:
            paths = sorted(Path(folder).iterdir(), reverse=True)
        except OSError:
            continue
        yield from (str(path) for path in paths if _NAME.match(path.name) and os.access(path, os.X_OK))
