"""Runs `uv pip compile` with limited time, memory and output, in an empty folder that is its home, too."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from uv import find_uv_bin

from environments.resolving.limited_process import ProcessLimits, read_start, run_limited

# Wheels for the first one also run on nodes with an old glibc; some packages need the other.
PLATFORMS = ("x86_64-manylinux_2_28", "x86_64-manylinux_2_39")
NO_WHEEL_FOR_PLATFORM = "matching platform tag"
# For each platform.
MAX_S = 90
MAX_CPU_S = 120
MAX_MEMORY_BYTES = 4 * 2**30
# Of one file: uv downloads a whole wheel if an index serves neither metadata nor parts of files.
MAX_FILE_BYTES = 2 * 2**30
MAX_LOCK_BYTES = 4 * 2**20
MAX_PYLOCK_BYTES = 16 * 2**20
MAX_MESSAGE_BYTES = 64 * 1024
LOCK_FILE = "requirements.lock"


@dataclass(frozen=True)
class Resolution:
    """`lock`: the text of the lock, "" if there is none. `message`: what uv wrote. `is_timeout`: it was ended
    after MAX_S seconds. `pylock`: the lock once more as pylock.toml, which has the sizes of files; "" if uv
    could not write it."""

    lock: str
    message: str
    is_timeout: bool = False
    pylock: str = ""


@dataclass(frozen=True)
class SourcePackage:
    """A package that is locked as source, with what its metadata would say: `dependencies` and `extras`. uv
    takes these instead of building it, which would run its code."""

    name: str
    dependencies: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()


def run_uv(
    requirements: str, python: str, variables: Mapping[str, str], sources: Sequence[SourcePackage] = ()
) -> Resolution:
    """Returns what uv makes of the requirements for this version of Python: for the first platform, or for
    the second if a package has no wheel for the first. Raises OSError if uv cannot be started."""
    platform, second = PLATFORMS
    with tempfile.TemporaryDirectory(prefix="trainhub-resolve-") as name:
        folder = Path(name)
        options = _source_options(folder, sources)
        resolution = _run(folder, requirements, [*_compile(python, platform), *options], variables)
        if NO_WHEEL_FOR_PLATFORM in resolution.message:
            # In the same folder, so that what was downloaded is not downloaded again.
            platform = second
            resolution = _run(folder, requirements, [*_compile(python, second), *options], variables)
        if not resolution.lock:
            return resolution
        pylock = _as_pylock(folder, [*_compile(python, platform), *options], variables)
        return replace(resolution, pylock=pylock)


def _source_options(folder: Path, sources: Sequence[SourcePackage]) -> list[str]:
    """Returns the options that let uv take these packages as source."""
    if not sources:
        return []
    # Without a version: it holds for all that uv considers, so that it never builds one for its metadata.
    entries = (
        f"[[dependency-metadata]]\nname = {json.dumps(source.name)}\n"
        f"requires-dist = {json.dumps(source.dependencies)}\nprovides-extra = {json.dumps(source.extras)}\n"
        for source in sources
    )
    settings = folder / "uv.toml"
    settings.write_text("\n".join(entries))
    return [f"--config-file={settings}", *(f"--no-binary={source.name}" for source in sources)]


def _as_pylock(folder: Path, command: list[str], variables: Mapping[str, str]) -> str:
    """Returns the lock in the folder as pylock.toml, from uv's cache in the folder alone."""
    output = folder / "pylock.toml"
    options = ["--offline", "--no-deps", "--format=pylock.toml", f"--output-file={output}"]
    argv = [*command, *options, str(folder / LOCK_FILE)]
    is_done = _run_within_limits(folder, argv, variables, folder / "pylock.log") == 0
    return output.read_text() if is_done and output.stat().st_size <= MAX_PYLOCK_BYTES else ""


def _run(folder: Path, requirements: str, command: list[str], variables: Mapping[str, str]) -> Resolution:
    source, lock, log = (folder / file for file in ("requirements.txt", LOCK_FILE, "uv.log"))
    source.write_text(requirements)
    code = _run_within_limits(folder, [*command, f"--output-file={lock}", str(source)], variables, log)
    message = read_start(log, MAX_MESSAGE_BYTES)
    if code != 0 or not lock.exists():
        return Resolution("", message, code is None)
    if lock.stat().st_size > MAX_LOCK_BYTES:
        return Resolution("", f"error: the lock has more than {MAX_LOCK_BYTES // 2**20} MiB")
    return Resolution(lock.read_text(), message)


def _run_within_limits(
    folder: Path, command: list[str], variables: Mapping[str, str], log: Path
) -> int | None:
    environ = {**uv_environ(folder), **variables}
    if any(item.startswith("--config-file=") for item in command):
        # The file replaces all others; uv refuses both together.
        del environ["UV_NO_CONFIG"]
    return run_limited(command, environ, log, uv_limits())


def uv_limits() -> ProcessLimits:
    """Returns the limits of one start of uv."""
    return ProcessLimits(MAX_S, MAX_CPU_S, MAX_MEMORY_BYTES, MAX_FILE_BYTES)


def uv_environ(folder: Path) -> dict[str, str]:
    """Returns the variables of a uv that keeps everything in the folder and reads no settings."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_NO_CONFIG": "1",
        "UV_HTTP_TIMEOUT": "20",
        "UV_HTTP_RETRIES": "1",
    }


def _compile(python: str, platform: str) -> list[str]:
    return [
        find_uv_bin(),
        "pip",
        "compile",
        "--quiet",
        "--color=never",
        "--no-progress",
        "--no-header",
        "--no-python-downloads",
        f"--python={sys.executable}",
        f"--python-version={python}",
        f"--python-platform={platform}",
        # Never a source distribution without known metadata: building one for it runs its code.
        "--only-binary=:all:",
        "--generate-hashes",
        "--emit-index-annotation",
    ]
