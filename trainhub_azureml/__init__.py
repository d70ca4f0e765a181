"""Runs scripts of the Azure ML SDK v1 on TrainHub, unchanged.

    python -m trainhub_azureml submit.py ARGUMENTS
    python -m trainhub_azureml check PATH...

The modules below `names/` bear the names that such scripts import (`azureml.core` and others); they import
everything from here. It needs nothing but the standard library of Python 3.8 or newer, and `trainhub_sdk`. It
is made from the public documentation, contains no code of the original, and is not affiliated with
Microsoft."""

from __future__ import annotations

__version__ = "0.1.0"
# Of the SDK whose calls are offered: scripts print it, and compare it with the oldest that they support.
VERSION = "1.62.0"


def load_ipython_extension(_shell: object) -> None:
    """For `%load_ext trainhub_azureml` in a notebook: puts the names first on the path."""
    from trainhub_azureml.runner import put_names_first

    put_names_first()
