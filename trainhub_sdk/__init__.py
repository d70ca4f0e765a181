"""The SDK of TrainHub: submit training runs from Python, follow them, and use what they leave.

    from trainhub_sdk import Client, RunSpec

    client = Client.from_env()
    run = client.submit(RunSpec(script="train.py", arguments=["--epochs", 3]), folder=".")
    run.wait(show_output=True)
    run.download("model.pt", to="model.pt")

It needs nothing but the standard library of Python 3.8 or newer, so it installs beside any training stack. It
speaks the JSON API of a hub, which `/api/` on each hub documents, and imports nothing of the hub itself."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["Client", "RunSpec", "TrainHubError", "__version__"]

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainhub_sdk.client import Client
    from trainhub_sdk.errors import TrainHubError
    from trainhub_sdk.spec import RunSpec

_MODULES = {"Client": "client", "RunSpec": "spec", "TrainHubError": "errors"}


def __getattr__(name: str) -> Any:
    # A command line that only prints its help loads no HTTP client.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
