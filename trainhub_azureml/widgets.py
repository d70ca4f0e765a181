"""The widget of a run: its state and its address; in a notebook a table that follows the run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainhub_azureml.run import Run

PAUSE_S = 3.0
# A cell that shows a run must not wait for its end.
LIVE_S = 30.0


class RunDetails:
    def __init__(self, run_instance: Run) -> None:
        self.run = run_instance

    def show(self, render_lib: Any = None, widget_settings: Any = None) -> None:
        """Prints the state and the address of the run; in a notebook shows it as a table, and goes on with
        that for half a minute while it runs."""
        display = _notebook_display()
        if display is None:
            row = self.run._row(refresh=True)
            print(f"Run {row.number} is {row.state}: {row.url}", flush=True)
            return
        handle = display(self.run, display_id=True)
        end = time.monotonic() + LIVE_S
        while handle is not None and time.monotonic() < end and not self.run._row(refresh=True).is_final:
            time.sleep(PAUSE_S)
            handle.update(self.run)

    def get_widget_data(self, widget_settings: Any = None) -> dict[str, Any]:
        return self.run.get_details()


def _notebook_display() -> Any:
    """Returns the function of IPython that shows an object, None outside a notebook."""
    import sys

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display  # type: ignore[import-not-found]

    return display
