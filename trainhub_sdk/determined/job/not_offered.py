"""What of the package `determined` is not offered in runs, and what to use instead."""

from __future__ import annotations

import sys

OFFERED = frozenset({"determined.core"})
_CLASSES = (
    "is not offered: classes of trials need Determined's own training loop. Train in a script of your own "
    "with determined.core.init(), and report metrics and checkpoints there (Core API)"
)
_SENTENCES = {
    "pytorch": _CLASSES,
    "keras": _CLASSES,
    "lightning": _CLASSES,
    "estimator": _CLASSES,
    "transformers": (
        "is not offered: use the callbacks of Transformers, which log to TrainHub by MLflow "
        "(docs/frameworks.md), or determined.core.init() in a callback of your own"
    ),
    "launch": "is not offered: choose the distribution of the run, and TrainHub starts its processes",
    "experimental": "is not offered: use trainhub_sdk.Client to submit and read runs",
    "tensorboard": "is not offered: write event files below logs/, which the hub reads",
}


def sentence(module: str) -> str:
    """Returns why a module of `determined` cannot be imported, and what to use instead."""
    parts = module.split(".")
    return f"{module} {_SENTENCES.get(parts[1], 'is not offered: only the Core API is')}."


class RefusedModules:
    """A finder that refuses all modules of `determined` that are not offered, so that nothing of an installed
    one is mixed with this package."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name.startswith("determined.") and name not in OFFERED:
            # Without its attribute `name`: `from PACKAGE import NAME` would replace the sentence.
            raise ModuleNotFoundError(sentence(name))


def refuse_other_modules() -> None:
    if RefusedModules not in sys.meta_path:
        sys.meta_path.insert(0, RefusedModules)
