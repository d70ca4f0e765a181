"""A known failure: the pattern that recognises it, its meaning and its remedy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

MAX_NAME_LENGTH = 120


@dataclass(frozen=True)
class FailurePattern:
    """`kind`: the name for programs. `symptoms`: a description for the documentation. `{name}` in `meaning`
    and `remedy` stands for the text that the pattern's group matched (a module, a file …), else for
    `unnamed`.

    `pattern` is searched in single lines. `signals`: a process ended by one of them has this failure unless
    its log explains more. `echo`: a short reason for a rank that ended this way *because of another rank*;
    such a rank is not the cause if another one has an error of its own. `link`: page for the remedy, one of
    LINKS."""

    kind: str
    title: str
    symptoms: str
    meaning: str
    remedy: str
    pattern: str = ""
    unnamed: str = ""
    signals: tuple[int, ...] = ()
    echo: str = ""
    link: str = ""

    @cached_property
    def _compiled(self) -> re.Pattern[str] | None:
        return re.compile(self.pattern) if self.pattern else None

    def match(self, line: str) -> FailureMatch | None:
        match = self._compiled.search(line) if self._compiled else None
        if match is None:
            return None
        # Each alternative of a pattern may have a group of its own; only the one that matched is set.
        return FailureMatch(self, _short(next((group for group in match.groups() if group), self.unnamed)))


@dataclass(frozen=True)
class FailureMatch:
    """A known failure that matched; `name` is the text that its pattern captured."""

    failure: FailurePattern
    name: str = ""

    @property
    def meaning(self) -> str:
        return self.failure.meaning.format(name=self.name)

    @property
    def remedy(self) -> str:
        return self.failure.remedy.format(name=self.name)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_NAME_LENGTH else f"{flat[:MAX_NAME_LENGTH]}…"
