"""A wheel built from the hub's own sources, so that what others install has the version of the hub."""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from workspaces import process_caches

log = logging.getLogger(__name__)
BUILDER = Path(settings.BASE_DIR) / "packaging" / "build_wheel.py"
BUILD_TIMEOUT_S = 120
SOURCES_CURRENT_S, FAILURE_CURRENT_S = 60.0, 300.0
# Delay after the start of the web server, which is busy at first.
BUILD_AFTER_SECONDS = 60.0


@dataclass
class WheelLookup:
    """What was found last: the `wheel`, None if it could not be built, for the folder `place`. It is current
    until `until`, a time of the monotonic clock."""

    place: Path | None = None
    wheel: Path | None = None
    until: float = 0.0

    def is_current(self, place: Path) -> bool:
        is_there = self.wheel is None or self.wheel.exists()
        return self.place == place and time.monotonic() < self.until and is_there


@dataclass(frozen=True)
class OwnWheel:
    """A wheel that is built on first use, once per version of its sources. Whoever asks may be anybody, so
    the sources are compared once in SOURCES_CURRENT_S, and a failed build is tried again only after
    FAILURE_CURRENT_S.

    `package`: its name for packaging/build_wheel.py. `label`: its name in the log. `sources`: the files and
    folders of the project on which it depends. `pattern`: of its file name. `folder_setting`: the setting
    that names the folder for it, in which nothing else may be."""

    package: str
    label: str
    sources: tuple[str, ...]
    pattern: str
    folder_setting: str
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)
    _last: WheelLookup = field(default_factory=WheelLookup, compare=False, repr=False)

    def __post_init__(self) -> None:
        process_caches.register(self.forget)

    def path(self) -> Path | None:
        """Returns the wheel, or None if it cannot be built (the log says why)."""
        place = Path(getattr(settings, self.folder_setting))
        # Held during the build: a second caller waits for the wheel instead of building it again.
        with self._lock:
            if not self._last.is_current(place):
                folder = place / self.sources_digest()
                wheel = self._in_folder(folder) or (self._build(folder) if BUILDER.exists() else None)
                current_s = SOURCES_CURRENT_S if wheel else FAILURE_CURRENT_S
                self._last.place, self._last.wheel = place, wheel
                self._last.until = time.monotonic() + current_s
            return self._last.wheel

    def forget(self) -> None:
        """Has the next caller compare the sources, and build the wheel if needed."""
        self._last.until = 0.0

    def sources_digest(self) -> str:
        """Returns a digest of the sources, so that an upgraded hub does not provide an older wheel."""
        content = hashlib.sha256()
        for file in sorted(self._files()):
            content.update(f"{file.relative_to(settings.BASE_DIR)}\0".encode() + file.read_bytes())
        return content.hexdigest()[:16]

    def _files(self) -> Iterator[Path]:
        for name in ("LICENSE", "packaging/build_wheel.py", f"packaging/{self.package}", *self.sources):
            path = Path(settings.BASE_DIR, name)
            # Compiled files appear while the hub runs, and would change the digest.
            yield from (
                file
                for file in ([path] if path.is_file() else path.rglob("*"))
                if file.is_file() and file.suffix != ".pyc"
            )

    def _in_folder(self, folder: Path) -> Path | None:
        return next(folder.glob(self.pattern), None)

    def _build(self, folder: Path) -> Path | None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            result = subprocess.run(
                [sys.executable, str(BUILDER), str(folder), "--package", self.package],
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=BUILD_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            log.exception("%s was not built within %d s", self.label, BUILD_TIMEOUT_S)
            return None
        if result.returncode:
            log.error("%s could not be built:\n%s", self.label, result.stderr)
            return None
        _discard_others(folder)
        return self._in_folder(folder)


@contextmanager
def build_after_start(*wheels: OwnWheel, after_seconds: float = BUILD_AFTER_SECONDS) -> Iterator[None]:
    """Lifespan hook of the web server that builds the wheels in the background, so that the first person who
    needs one does not wait for it."""
    with ExitStack() as timers:
        for wheel in wheels:
            timer = threading.Timer(after_seconds, wheel.path)
            timer.name, timer.daemon = f"{wheel.package}-wheel", True
            timer.start()
            timers.callback(timer.cancel)
        yield


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _discard_others(folder: Path) -> None:
    """Deletes wheels of other sources, which upgrades leave behind."""
    for other in folder.parent.iterdir():
        if other == folder:
            continue
        if other.is_dir() and not other.is_symlink():
            shutil.rmtree(other, ignore_errors=True)
        else:
            other.unlink(missing_ok=True)
