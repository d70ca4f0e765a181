"""Placed first on every rank's path. Prevents two kinds of bad exits, then runs the sitecustomize that it
hides.

torch 2.13's gloo aborts a finished process (SIGABRT, "terminate called without an active exception") when its
loop thread wants the interpreter while that is closing down (pytorch issue 190489). The handler that is
registered first runs last, and a pause of 0.1 s there is enough.

mpi4py calls MPI_Finalize at the end, even in a rank that has failed with an exception. That call waits for
peers which wait for this rank, indefinitely. So such a rank exits without it, and mpirun sees the failure.

It must run on any Python that a user may bring: old syntax only."""

import atexit
import os
import sys


def _let_gloo_finish() -> None:
    if "torch.distributed" in sys.modules:
        __import__("time").sleep(0.1)


def _end_without_finalize() -> None:
    # Not in an excepthook: torch calls that with a stderr of its own, whose content would be lost.
    if getattr(sys, "last_value", None) is None:
        return
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(1)


if "OMPI_COMM_WORLD_RANK" in os.environ:
    atexit.register(_end_without_finalize)
atexit.register(_let_gloo_finish)

_here = __file__.rpartition("/")[0]
_ours = sys.modules.pop("sitecustomize", None)
_path = list(sys.path)
sys.path[:] = [entry for entry in _path if entry.rstrip("/") != _here]
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
except ImportError as error:
    if error.name != "sitecustomize":
        raise
    if _ours is not None:
        sys.modules["sitecustomize"] = _ours
finally:
    # Entries that the other sitecustomize added stay.
    sys.path[:] = [entry for entry in _path if entry.rstrip("/") == _here] + sys.path
