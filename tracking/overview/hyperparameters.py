"""Reads hyperparameters from the arguments of a script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

# --lr=0.1 and lr=0.1 (Hydra, +lr=0.1 adds a key). A path or an address with `=` in it is no key.
_ASSIGNED = re.compile(r"(?:--?|\+{1,2})?([A-Za-z_][\w.-]*)=(.*)\Z", re.DOTALL)
_FLAG = re.compile(r"--?([A-Za-z_][\w.-]*)\Z")
ON = "on"


@dataclass(frozen=True)
class Hyperparameters:
    """`pairs`: key and value in the order of the command line; a flag without a value is ON. `others`: the
    arguments that belong to no key."""

    pairs: tuple[tuple[str, str], ...]
    others: tuple[str, ...]

    def without(self, params: Mapping[str, str]) -> Hyperparameters:
        """Returns what the run did not log as params with the same value as well."""
        rest = (pair for pair in self.pairs if params.get(pair[0].replace("-", "_")) != pair[1])
        return replace(self, pairs=tuple(rest))


def read_hyperparameters(arguments: Sequence[str]) -> Hyperparameters:
    """Whether `--flag value` is a flag with an argument after it or a key with its value cannot be told from
    the text; the second is what most scripts mean."""
    pairs: list[tuple[str, str]] = []
    others: list[str] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        assigned, flag = _ASSIGNED.match(argument), _FLAG.match(argument)
        if assigned:
            pairs.append((assigned[1], assigned[2]))
        elif flag and waiting and not _starts_key(waiting[0]):
            pairs.append((flag[1], waiting.pop(0)))
        elif flag:
            pairs.append((flag[1], ON))
        else:
            others.append(argument)
    return Hyperparameters(tuple(pairs), tuple(others))


def _starts_key(argument: str) -> bool:
    """Returns whether the argument begins a key of its own. A negative number is a value."""
    return bool(_FLAG.match(argument)) or (argument.startswith("-") and bool(_ASSIGNED.match(argument)))
