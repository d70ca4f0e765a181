"""Reads which packages an interpreter can import, from the files that installers leave. Nothing of them is
run: an environment may have code that every start of its Python executes.

Its files may be anybody's (an image), so every read is bounded, and links to other files are not followed."""

from __future__ import annotations

import os
import re
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PIP, CONDA = "pip", "conda"
MAX_PACKAGES = 5000
MAX_WORD = 200
# The headers come first in a file of metadata; a description may follow.
MAX_HEADER_BYTES = 16 * 1024
# A record of conda lists every file of its package.
MAX_CONDA_BYTES = 16 * 1024 * 1024
# Not compiled here: this module is imported while ranks start, and used later in a process of its own.
MINOR = r"python(3\.\d+)\Z"
VERSION_LINE = r"(?m)^version(?:_info)?\s*=\s*(3\.\d+(?:\.\d+)?)"
SYSTEM_TOO = r"(?mi)^include-system-site-packages\s*=\s*true\s*$"
HOME_LINE = r"(?m)^home\s*=\s*(/.*?)\s*$"
HEADER = rb"(?m)^(Name|Version):[ \t]*(\S+)[ \t]*\r?$"
# Python packages among the files of a package of conda, which pip would list again.
METADATA_FOLDER = rb"([^/\"]+\.(?:dist|egg)-info)[/\"]"
# The name of a record of conda: name-version-build.json. A name may have hyphens, the others have none.
CONDA_RECORD = r"(?s)(.+)-([^-]+)-([^-]+)\.json\Z"


def read_packages(python: str, environment: Mapping[str, str]) -> dict[str, object]:
    """Returns the version of the interpreter, as far as files tell it, and the packages as [installer, name,
    version, build]. `environment`: the variables with which it is started."""
    prefix = os.path.dirname(os.path.dirname(python))
    configuration = _read(f"{prefix}/pyvenv.cfg", MAX_HEADER_BYTES).decode(errors="replace")
    match = re.search(VERSION_LINE, configuration)
    version = match[1] if match else _minor_of(python, prefix)
    conda, owned = _conda_packages(f"{prefix}/conda-meta")
    version = next((item[2] for item in conda if item[1] == "python"), version)
    minor = ".".join(version.split(".")[:2])
    prefixes = [prefix]
    if not configuration:
        prefixes += [_user_base(environment), os.path.dirname(os.path.dirname(os.path.realpath(python)))]
    elif re.search(SYSTEM_TOO, configuration) and (home := re.search(HOME_LINE, configuration)):
        prefixes += [_user_base(environment), os.path.dirname(home[1])]
    folders = [folder for folder in environment.get("PYTHONPATH", "").split(":") if os.path.isabs(folder)]
    folders += [folder for place in dict.fromkeys(prefixes) for folder in _site_folders(place, minor)]
    packages = conda + _pip_packages(folders, owned)
    return {
        "python": version,
        "packages": packages[:MAX_PACKAGES],
        "is_complete": len(packages) <= MAX_PACKAGES,
    }


def _user_base(environment: Mapping[str, str]) -> str:
    return environment.get("PYTHONUSERBASE") or f"{environment.get('HOME', '')}/.local"


def _minor_of(python: str, prefix: str) -> str:
    match = re.search(MINOR, os.path.realpath(python))
    if match:
        return match[1]
    minors = {found[1] for name in _names(f"{prefix}/lib") if (found := re.match(MINOR, name))}
    return minors.pop() if len(minors) == 1 else ""


def _site_folders(prefix: str, minor: str) -> Iterator[str]:
    """Yields the folders in which an interpreter of that prefix finds packages, as CPython and Debian have
    them."""
    python = f"python{minor}"
    for library in ("local/lib", "lib", "lib64"):
        for folder in ("site-packages", "dist-packages"):
            yield f"{prefix}/{library}/{python}/{folder}"
    yield f"{prefix}/lib/python3/dist-packages"


def _conda_packages(folder: str) -> tuple[list[list[str]], frozenset[str]]:
    """Returns the packages that conda has installed, and the folders of metadata that belong to them."""
    packages: list[list[str]] = []
    owned: set[str] = set()
    for name in _names(folder):
        match = re.match(CONDA_RECORD, name)
        if match and _are_plain(*match.groups()):
            packages.append([CONDA, *match.groups()])
            record = _read(f"{folder}/{name}", MAX_CONDA_BYTES)
            owned.update(entry.decode(errors="replace") for entry in re.findall(METADATA_FOLDER, record))
    return packages, frozenset(owned)


def _pip_packages(folders: Iterable[str], owned: frozenset[str]) -> list[list[str]]:
    """Returns the packages in the folders, by name; the first of a name counts, as for Python."""
    versions: dict[str, list[str]] = {}
    places: set[tuple[int, int]] = set()
    for folder in folders:
        try:
            facts = os.stat(folder)
        except OSError:
            continue  # most interpreters lack some of them
        if (facts.st_dev, facts.st_ino) in places:
            continue  # lib64 is a link to lib
        places.add((facts.st_dev, facts.st_ino))
        for entry in _names(folder):
            if entry.endswith((".dist-info", ".egg-info")) and entry not in owned:
                name, version = _name_and_version(folder, entry)
                key = re.sub(r"[-_.]+", "-", name).lower()
                if name and version and _are_plain(name, version):
                    versions.setdefault(key, [PIP, name, version, ""])
    return [versions[key] for key in sorted(versions)]


def _name_and_version(folder: str, entry: str) -> tuple[str, str]:
    path = f"{folder}/{entry}"
    content = b""
    for file in (f"{path}/METADATA", f"{path}/PKG-INFO", path):
        content = content or _read(file, MAX_HEADER_BYTES)
    headers: Mapping[bytes, bytes] = dict(reversed(re.findall(HEADER, content.partition(b"\n\n")[0])))
    # Without metadata Python itself knows the package by the name of the folder.
    stem, *rest = entry.rpartition(".")[0].split("-")
    name = headers.get(b"Name", b"").decode(errors="replace") or stem
    return name, headers.get(b"Version", b"").decode(errors="replace") or (rest[0] if rest else "")


def _are_plain(*words: str) -> bool:
    return all(word.isascii() and word.isprintable() and len(word) <= MAX_WORD for word in words)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read(path: str, limit: int) -> bytes:
    """Returns the beginning of a plain file; b"" for anything else."""
    try:
        # O_NONBLOCK: opening a pipe would wait for its other end.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, limit) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    finally:
        os.close(file)
