"""Tells the user how far pip or uv is: in the preparation log, and in the build log among their own lines,
which the run's page shows during the build."""

from __future__ import annotations

import os
import time
from itertools import islice
from typing import Protocol

from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_node.environments.pip_progress import PipProgress
from trainhub_node.supervisor.gang import Gang, append_to_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sized
    from typing import Protocol

    class BuildProgress(Protocol):
        """Reads how far a program is from its output. `needed`: the packages; `is_installing`: all are
        there."""

        is_installing: bool

        @property
        def needed(self) -> Sized: ...

        def feed(self, data: bytes) -> None: ...

        def sentence(self) -> str: ...


INTERVAL_S = 5.0
PIECE_BYTES = 262144
METADATA = ".dist-info"
# Far more than an environment has; a folder that a package has filled must not delay the build.
MAX_ENTRIES = 20000


class ProgressReport:
    """Follows the build log from its present end on."""

    def __init__(self, gang: Gang, environment: str, progress: BuildProgress | None = None) -> None:
        self._gang = gang
        self._environment = environment
        self._log = gang.folder.log(ENVIRONMENT_LOG)
        self._offset = os.stat(self._log, follow_symlinks=False).st_size
        self._progress: BuildProgress = PipProgress() if progress is None else progress
        self._last = ""
        self._next_at = time.monotonic() + INTERVAL_S
        self._installed_before = self._installed()

    def write(self) -> None:
        """Writes a line if pip has made progress, at most one every INTERVAL_S seconds."""
        now = time.monotonic()
        if now < self._next_at:
            return
        self._next_at = now + INTERVAL_S
        self._read()
        sentence = self._sentence()
        if sentence != self._last:
            self._gang.log(sentence)
            append_to_file(self._log, f"== {sentence}\n".encode())
            self._last = sentence

    def _read(self) -> None:
        file = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            while piece := os.pread(file, PIECE_BYTES, self._offset):
                self._offset += len(piece)
                self._progress.feed(piece)
        finally:
            os.close(file)

    def _sentence(self) -> str:
        if not self._progress.is_installing:
            return self._progress.sentence()
        # pip says nothing while it installs, but writes the metadata of each package when it is in place.
        count, total = self._installed() - self._installed_before, len(self._progress.needed)
        return f"Installed {min(count, total)} of {total} packages."

    def _installed(self) -> int:
        """Returns how many packages the environment contains."""
        libraries = f"{self._environment}/lib"
        try:
            pythons = [name for name in os.listdir(libraries) if name.startswith("python")]
            with os.scandir(f"{libraries}/{pythons[0]}/site-packages") as entries:
                return sum(entry.name.endswith(METADATA) for entry in islice(entries, MAX_ENTRIES))
        except (OSError, IndexError):
            # There is no environment yet: this call makes it.
            return 0
