"""Keeps a process that runs searches until they are over."""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING

from trainhub_sdk.errors import TrainHubError

if TYPE_CHECKING:
    from trainhub_azureml.hyperdrive.search_driver import SearchDriver

PAUSE_S = 1.0
_drivers: list[SearchDriver] = []


def keep_process(driver: SearchDriver) -> None:
    """The process does not end before this search is over, or Ctrl-C interrupts it."""
    if not _drivers:
        atexit.register(_finish)
    _drivers.append(driver)


def _finish() -> None:
    # A process that was forked has no threads of its parent.
    drivers = [one for one in _drivers if not one.is_over and one.process_id == os.getpid()]
    if not drivers:
        return
    numbers = ", ".join(str(driver.search.number) for driver in drivers)
    _print(
        f"this process runs the search {numbers}, and stays until that is over. Ctrl-C ends the search; the "
        "runs that it has submitted go on."
    )
    try:
        for driver in drivers:
            while not driver.wait(PAUSE_S):
                pass
    except KeyboardInterrupt:
        for driver in drivers:
            _interrupt(driver)


def _interrupt(driver: SearchDriver) -> None:
    try:
        _print(driver.interrupt())
    except TrainHubError as error:
        _print(f"the hub does not know that the search {driver.search.number} has ended: {error}")


def _print(sentence: str) -> None:
    print(f"TrainHub: {sentence}", file=sys.stderr, flush=True)
