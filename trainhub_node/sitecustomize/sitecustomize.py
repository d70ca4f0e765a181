"""Put in front of every rank's path: cures torch's exit race, then runs the sitecustomize it stands before.

torch 2.13's gloo aborts a finished process (SIGABRT, "terminate called without an active exception") when its
loop thread wants the interpreter while that is closing down (pytorch issue 190489). The handler registered
first runs last, and 0.1 s there are enough. It must run on any Python that a user may bring: old syntax only.
"""

import atexit
import sys


def _let_gloo_finish() -> None:
    if "torch.distributed" in sys.modules:
        __import__("time").sleep(0.1)


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
    # What the other one added stays.
    sys.path[:] = [entry for entry in _path if entry.rstrip("/") == _here] + sys.path
