"""Podman of an account that is not root, with numbers for its containers. The machine keeps its files of such
numbers: whatever uses this Podman sees others, in a mount namespace of its own."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness import guard
from tests.node.accounts import as_account
from tests.node.containers.images import Podman, has_podman, remove_podman

ACCOUNT = "daemon"
# Above what Linux gives to accounts by itself, and below what agents give to runs.
NUMBERS = "1800000000:65536"
LINE = 'mount --bind "$1" /etc/subuid && mount --bind "$1" /etc/subgid && shift && exec "$@"'


def has_rootless_podman() -> bool:
    return has_podman() and shutil.which("newuidmap") is not None and shutil.which("newgidmap") is not None


class RootlessPodman(Podman):
    def __init__(self, folder: Path) -> None:
        folder.chmod(0o711)
        super().__init__(folder)
        for name in ("home", "run", "store"):
            (folder / name).mkdir(mode=0o700)
            shutil.chown(folder / name, ACCOUNT, ACCOUNT)
        numbers = folder / "numbers"
        numbers.write_text(f"{ACCOUNT}:{NUMBERS}\n")
        self.variables |= {"HOME": str(folder / "home"), "XDG_RUNTIME_DIR": str(folder / "run")}
        self.before = ["unshare", "--mount", "sh", "-c", LINE, "sh", str(numbers), *as_account(ACCOUNT)]


@contextmanager
def private_rootless_podman(folder: Path) -> Iterator[RootlessPodman]:
    """Podman for tests; what it holds is removed at the end."""
    if not has_rootless_podman():
        pytest.skip("containers of other accounts need root, podman and uidmap (.ci/system-packages)")
    # Podman's processes outlive its calls.
    guard.own_folder(folder)
    guard.on_exit("rm", "-rf", str(folder))
    podman = RootlessPodman(folder)
    try:
        yield podman
    finally:
        # It keeps the namespaces of Podman's calls.
        pause = int((folder / "run/libpod/tmp/pause.pid").read_text())
        remove_podman(podman)
        os.kill(pause, signal.SIGKILL)
