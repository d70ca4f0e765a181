"""Open MPI, which tests marked `mpi` start."""

from __future__ import annotations

import shutil

import pytest


def require() -> None:
    """Fails the test where mpirun is missing: a test that is skipped proves nothing."""
    if shutil.which("mpirun") is None:
        pytest.fail(
            "mpirun is not installed: run .ci/system-packages (Debian and Ubuntu: openmpi-bin).",
            pytrace=False,
        )
