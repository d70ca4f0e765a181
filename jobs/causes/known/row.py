"""One known failure: how it is recognised, what it means, what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

MAX_NAME_LENGTH = 120


@dataclass(frozen=True)
class KnownFailure:
    """`kind`: its word for programs. `seen`: how it looks, for the documents. `{name}` in `meaning` and
    `remedy` is what the pattern's group found (a module, a file …), else `unnamed`.

    `pattern` is searched in single lines. `signals`: ends by these are this failure where no text says more.
    `echo`: in a few words how a rank ends that way *because of another one*; such a rank is never the cause
    while another one tells an error of its own. `link`: where the remedy is to be found, one of LINKS."""

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
        return FailureMatch(self, _short(next((group for group in match.groups() if group), self.unnamed)))


@dataclass(frozen=True)
class FailureMatch:
    """A known failure as it was met."""

    failure: KnownFailure
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
