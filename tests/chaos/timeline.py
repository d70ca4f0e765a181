"""What was done to an installation, and when: whoever reads of a failure wants to know what came before."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.world import ChaosHosts

log = logging.getLogger(__name__)


class Timeline:
    """`note` says something at once, and writes it to `timeline.txt` in `folder`. Its lines have the clock of
    the logs."""

    def __init__(self, folder: Path, seed: int, seconds: float) -> None:
        self._folder = folder
        self._begin = time.monotonic()
        self._lines: list[str] = []
        self.note(f"seed {seed}, {seconds:.0f} s")

    def note(self, text: str) -> None:
        elapsed = time.monotonic() - self._begin
        line = f"{time.strftime('%H:%M:%S')} +{elapsed:.1f} s: {text}"
        self._lines.append(line)
        log.warning("%s", line)
        with (self._folder / "timeline.txt").open("a") as file:
            file.write(f"{line}\n")

    @contextmanager
    def explaining(self, installation: ChaosHosts) -> Iterator[None]:
        """Adds the timeline to what fails, and where the logs of all parts are kept."""
        try:
            yield
        except BaseException as error:
            evidence = self._folder / "evidence"
            installation.save_logs(evidence)
            error.add_note("\n".join((*self._lines, f"Logs of all parts: {evidence}")))
            raise
