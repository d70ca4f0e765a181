"""Versions of packages that cannot be installed any more, because they have no wheel for the Pythons of
today."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from trainhub_azureml.conda_dependencies import CondaDependencies, package_name, requirement_lines
from trainhub_azureml.local_files.conda_yaml import parse_conda

_PIN = re.compile(r"\s*(?:[\w./-]+::)?[\w.-]+(?:\[[^\]]*\])?\s*={1,3}\s*v?(\d+(?:\.\d+)*)")
# The first version with a wheel for Python 3.11 on Linux.
OLDEST: Mapping[str, tuple[int, ...]] = {
    "numpy": (1, 23, 2),
    "pandas": (1, 5, 1),
    "pillow": (9, 3),
    "pytorch": (2, 0),
    "scikit-learn": (1, 1, 3),
    "scipy": (1, 9, 2),
    "tensorflow": (2, 12),
    "torch": (1, 13),
    "torchvision": (0, 15),
}
OLDEST_PYTHON = (3, 8)
_REMOVED = {
    "tensorflow-gpu": "does not exist any more: require tensorflow[and-cuda]",
    "sklearn": "is no package: require scikit-learn",
}


def check_pins(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields each requirement or conda package that cannot be installed any more, with the reason."""
    for line in lines:
        name = package_name(line)
        pin = _PIN.match(line)
        version = tuple(map(int, pin.group(1).split("."))) if pin else ()
        if name in _REMOVED:
            yield line, _REMOVED[name]
        elif name == "python" and version and version < OLDEST_PYTHON:
            yield line, "no node with a supported system has it: 3.11 is what most have"
        elif name in OLDEST and version and version < OLDEST[name]:
            oldest = ".".join(map(str, OLDEST[name]))
            yield line, f"has no wheel for Python 3.11: {oldest} is the first that has one"


def lines_of_file(text: str, name: str) -> list[str]:
    """Returns the packages that a conda file or a file of requirements names. Raises ValueError for a conda
    file that cannot be read."""
    if name.endswith(".txt"):
        return requirement_lines(text)
    dependencies = CondaDependencies(_underlying_structure=parse_conda(text))
    return [*dependencies.conda_packages, *dependencies.pip_packages]
