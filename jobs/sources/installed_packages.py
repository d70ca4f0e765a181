"""The packages that building an environment has installed, as its build log names them."""

from __future__ import annotations

import re

from jobs.logs import log_store
from trainhub_launch.log_names import ENVIRONMENT_LOG

# The last line of a pip installation lists `name-version` for each package.
INSTALLED = re.compile(rb"^Successfully installed (.+)$", re.MULTILINE)
# A version has no hyphen and a name may have some, so the version begins after the last hyphen.
DISTRIBUTION = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*?)-(\d[^\s-]*)\Z")
MAX_BYTES = 256 * 1024
MAX_WORD_LENGTH = 200


def installed_packages(run_id: str, attempt: int) -> dict[str, str]:
    """Returns normalized name -> version of each package that this attempt installed; nothing if it used an
    environment that was there already."""
    try:
        data = log_store.read(run_id, attempt, ENVIRONMENT_LOG, 0, MAX_BYTES) if attempt else b""
    except log_store.BadLogName:
        return {}
    words = [word for line in INSTALLED.findall(data) for word in line.decode(errors="replace").split()]
    # A log may contain anything; a longer word is not the name of a package.
    matches = [DISTRIBUTION.match(word) for word in words if len(word) < MAX_WORD_LENGTH]
    return {normalized_name(match[1]): match[2] for match in matches if match}


def normalized_name(package: str) -> str:
    """Returns the name of a package as the package index compares it."""
    return re.sub(r"[-_.]+", "-", package).lower()
