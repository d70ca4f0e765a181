"""The wheels that the hub serves below /sdk/: its own one, and those that it requires."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from workspaces import process_caches
from workspaces.own_wheels import own_wheel
from workspaces.own_wheels.own_wheel import OwnWheel

SDK_WHEEL = OwnWheel(
    package="sdk",
    label="The package of the command line",
    sources=("trainhub_sdk", "trainhub_cli", "trainhub_azureml"),
    pattern="trainhub-*-py3-none-any.whl",
    folder_setting="SDK_WHEELS",
)
REQUIREMENTS = Path(settings.BASE_DIR) / "packaging" / "sdk" / "requirements.txt"
# In the hub's package, or downloaded by `make up`: they belong to the installation, not to its data.
_PACKAGED = REQUIREMENTS.with_name("wheels")
REQUIREMENT_WHEELS = _PACKAGED if _PACKAGED.is_dir() else Path(sys.prefix) / "sdk-wheels"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class ServedWheel:
    path: Path
    sha256: str

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class WheelListing:
    """`wheels`: by file name. `is_built`: the hub's own wheel is among them. `missing`: the requirements
    whose wheels this hub does not have."""

    wheels: Mapping[str, ServedWheel]
    is_built: bool
    missing: tuple[str, ...]


def wheel_listing() -> WheelListing:
    """Returns all wheels that this hub serves. Builds its own one on first use, which takes seconds."""
    own = SDK_WHEEL.path()
    wheels = {wheel.name: wheel for wheel in _requirement_wheels().values()}
    if own is not None:
        wheels[own.name] = _served(own)
    return WheelListing(wheels, own is not None, missing_requirements())


def missing_requirements() -> tuple[str, ...]:
    """Returns the names of the requirements whose wheels this hub does not have, sorted."""
    return tuple(sorted(set(_pins()) - set(_requirement_wheels())))


def _requirement_wheels() -> dict[str, ServedWheel]:
    """Returns the wheels of requirements by requirement. A file counts only if the list has its hash: its
    name proves nothing, and a download may have been cut off."""
    by_hash = {digest: name for name, digests in _pins().items() for digest in digests}
    files = [_served(path) for path in _files(REQUIREMENT_WHEELS)]
    return {by_hash[wheel.sha256]: wheel for wheel in files if wheel.sha256 in by_hash}


def _pins() -> dict[str, frozenset[str]]:
    """Returns the hashes of each requirement by its name. An installation without the list has none."""
    if not REQUIREMENTS.exists():
        return {}
    # The text before the first name is the list's comment.
    _, *parts = _PIN.split(REQUIREMENTS.read_text())
    return {name: frozenset(_HASH.findall(rest)) for name, rest in zip(parts[::2], parts[1::2], strict=True)}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob("*.whl") if path.is_file() and not path.is_symlink())


def _served(path: Path) -> ServedWheel:
    state = path.stat()
    return ServedWheel(path, _sha256(path, state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=64)
def _sha256(path: Path, modified_ns: int, size: int) -> str:
    """Returns the hash of the file in this state: nobody has to sign in for the page, so it must be cheap."""
    del modified_ns, size
    return own_wheel.sha256(path)


process_caches.register(_sha256.cache_clear)
