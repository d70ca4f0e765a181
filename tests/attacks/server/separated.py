"""A real hub that root has started with RUN_AS, on an interpreter that other accounts can reach."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django
import pytest

from tests.hub import PROJECT, Hub
from tests.node.accounts import as_account

HUB_ACCOUNT, RUNS_ACCOUNT = "daemon", "nobody"
# Compiled modules are kept: the accounts cannot write any, and each process would compile what it imports.
LEFT_OUT = ("test", "site-packages", "*.opt-?.pyc", "idlelib", "ensurepip", "config-*")
OTHERS_MAY_PASS = 0o001


class SeparatedHub(Hub):
    """`folder` must be one that other accounts can pass through, as pytest's own folders are not."""

    def __init__(self, folder: Path, **settings: str) -> None:
        own = {
            "RUN_AS": RUNS_ACCOUNT,
            "HUB_AS": HUB_ACCOUNT,
            "TRAINHUB_NODE_CACHE": str(folder / "data" / "node" / "cache"),
        }
        super().__init__(folder / "data", **{**own, **settings})
        self.python = passable_python(folder)
        self.settings["LD_LIBRARY_PATH"] = str(Path(self.python).parent.parent / "lib")


@contextmanager
def public_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="trainhub-separated-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def passable_python(folder: Path) -> str:
    """This interpreter, or a copy of it, with the packages of this one."""
    if _is_passable(Path(sys.executable).resolve()) and _is_passable(Path(sys.base_prefix)):
        return sys.executable
    made = folder / "python"
    program = made / "bin" / Path(sys.executable).resolve().name
    if not program.exists():
        library = Path(os.__file__).parent
        shutil.copytree(library, made / "lib" / library.name, ignore=shutil.ignore_patterns(*LEFT_OUT))
        program.parent.mkdir()
        shutil.copy(Path(sys.executable).resolve(), program)
        for shared in library.parent.glob("libpython*.so*"):
            shutil.copy(shared, made / "lib")
        packages = Path(django.__file__).parent.parent
        (made / "lib" / library.name / "site-packages").mkdir()
        (made / "lib" / library.name / "site-packages" / "packages.pth").write_text(f"{packages.resolve()}\n")
    command = [*as_account(HUB_ACCOUNT), str(program), "-c", "import ssl, django, redis.asyncio"]
    env = {"LD_LIBRARY_PATH": str(made / "lib")}
    done = subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"no interpreter that other accounts can reach: {done.stderr}"
    return str(program)


def uid_of(account: str) -> int:
    return pwd.getpwnam(account).pw_uid


def reads(account: str, path: Path) -> bool:
    """Whether the account can read the file, or list the folder."""
    words = ["ls" if path.is_dir() else "cat", str(path)]
    return (
        subprocess.run([*as_account(account), *words], cwd="/", capture_output=True, check=False).returncode
        == 0
    )


def status(pid: int, name: str) -> list[str]:
    """A line of /proc/PID/status, in words."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1:] for line in lines if line.startswith(f"{name}:"))


def _is_passable(path: Path) -> bool:
    return all(step.stat().st_mode & OTHERS_MAY_PASS for step in (path, *path.parents))


is_root = os.geteuid() == 0 and shutil.which("setpriv") is not None and _is_passable(PROJECT)
needs_root = pytest.mark.skipif(not is_root, reason="only root can start a hub under another account")
