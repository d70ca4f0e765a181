"""The name under which scripts know the Core API of Determined. TrainHub is not affiliated with Determined AI
or HPE."""

from trainhub_sdk.determined.job.cluster_info import ClusterInfo, TrialInfo, get_cluster_info
from trainhub_sdk.determined.job.not_offered import refuse_other_modules, sentence

refuse_other_modules()
from . import core  # noqa: E402 - nothing else may be found first

__version__ = "0.38.1"
LOG_FORMAT = "%(levelname)s: [%(process)s] %(name)s: %(message)s"
__all__ = ["LOG_FORMAT", "ClusterInfo", "TrialInfo", "core", "get_cluster_info"]


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # `from determined import NAME` would replace an AttributeError by a sentence that helps nobody.
    raise ImportError(sentence(f"determined.{name}"))
