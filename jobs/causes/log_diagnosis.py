"""What the log of one process says of its end: the failure it tells, quoted, and how it is known; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.causes import known
from jobs.causes.known import FailureMatch
from jobs.causes.log_lines import Line, lines
from jobs.causes.tracebacks import START, Chain, Traceback, chains, split

LONGEST_QUOTE = 40
LONGEST_QUOTED_LINE = 1000
LAST_LINES = 15
LOOKED_THROUGH = 40
"""Lines before the end that are searched where there is no traceback."""
AFTER = 12
"""Lines after an exception that may still belong to its message."""
NEAR = 100
"""An exception that ended the process stands at most this many lines before the log's end."""
OPEN_TYPES = (
    "RuntimeError",
    "DistBackendError",
    "DistNetworkError",
    "DistStoreError",
    "InternalError",
    "UnknownError",
)
"""Exceptions whose message goes on, unindented, in the lines below: libraries in C++ raise them with all they
have to say."""
ELASTIC = "torch/distributed/elastic/"
_UNREAD = ("SyntaxError: ", "IndentationError: ", "TabError: ")
"""What Python says, without a traceback, of a script that it could not even read."""
_FIRST_FAILURE = "Root Cause (first observed failure)"
_FAILED_CHILD = re.compile(r"\s+(rank|exitcode)\s+: (-?\d+)")


@dataclass(frozen=True)
class Quote:
    """Lines of a log; `offset` is where they begin in it."""

    text: str
    offset: int


@dataclass(frozen=True)
class Child:
    """The process of a launcher (torchrun) that failed first, by the launcher's own count."""

    rank: int
    exit_code: int


@dataclass(frozen=True)
class Saying:
    """`exception`: the line that names the error, "" where none is told; `began`: that of the root, where
    another one followed.

    `raised`: the exception came with a traceback. `distance`: lines between the quote's end and the log's.
    """

    exception: str = ""
    began: str = ""
    match: FailureMatch | None = None
    quote: Quote | None = None
    child: Child | None = None
    raised: bool = False
    distance: int = 0

    @property
    def is_echo(self) -> bool:
        return self.match is not None and bool(self.match.failure.echo)


def said(tail: bytes, offset: int, *, launcher: bool = False) -> Saying:
    """Read the end of a log, which begins at `offset`. `launcher`: several processes write into it."""
    found = lines(tail, offset)
    child = _first_failed(found)
    several = launcher or child is not None or len(_ranks(found)) > 1
    of_script = _without_launcher(found)
    told = [chain for chain in (_own(chain) for chain in chains(found)) if chain]
    ending = _ending(told, len(of_script) if child else len(found))
    if ending:
        chosen = _chosen(found, ending, several=several, child=child)
        return _of_chain(found, chosen, child)
    return _of_last_lines(of_script, child)


def _own(chain: Chain) -> Chain:
    """Without what launchers add, and what did not end the process."""
    if any(item.is_ignored for item in chain):
        return ()
    return tuple(item for item in chain if item.exception and not item.is_launchers_own)


def _ending(told: Sequence[Chain], end: int) -> list[Chain]:
    """The failures that stand together at the end; those before were survived."""
    near: list[Chain] = []
    for chain in reversed(told):
        if end - chain[-1].last > NEAR:
            break
        near.insert(0, chain)
        end = min(end, chain[0].first)
    return near


def _chosen(found: Sequence[Line], ending: Sequence[Chain], *, several: bool, child: Child | None) -> Chain:
    """Of one process its last failure, of several processes the first; one that is no echo of another before
    all."""
    own = [chain for chain in ending if not _is_echo(found, chain)] or list(ending)
    if not several:
        return own[-1]
    named = [chain for chain in own if child and chain[-1].prefix == f"[rank{child.rank}]:"]
    return (named or own)[0]


def _is_echo(found: Sequence[Line], chain: Chain) -> bool:
    match = _match(found, _telling(found, chain))
    return match is not None and bool(match.failure.echo)


def _telling(found: Sequence[Line], chain: Chain) -> Traceback:
    """What was raised last names what failed, but for what only followed from another rank's end."""
    for item in reversed(chain):
        match = _match(found, item)
        if match is None or not match.failure.echo:
            return item
    return chain[-1]


def _match(found: Sequence[Line], item: Traceback) -> FailureMatch | None:
    """How the exception is known: by its own words before those that follow it in the log."""
    words = [item.exception, *item.message]
    if item.type.rpartition(".")[2] in OPEN_TYPES:
        words += _following(found, item)
    return next((match for line in words if (match := known.of_line(line))), None)


def _following(found: Sequence[Line], item: Traceback) -> list[str]:
    """Lines right after the exception, as long as nobody else writes."""
    out = []
    for line in found[item.last : item.last + AFTER]:
        prefix, body = split(line.text)
        if START in line.text or ELASTIC in line.text or prefix != item.prefix:
            break
        out.append(body)
    return out


def _of_chain(found: Sequence[Line], chain: Chain, child: Child | None) -> Saying:
    item = _telling(found, chain)
    match, began = _match(found, item), ""
    for root in chain[: chain.index(item)]:
        at_root = _match(found, root)
        if match is None and at_root is not None and not at_root.failure.echo:
            match, began = at_root, root.exception
    first = next((part for part in chain if part.exception == began), item) if began else item
    chosen = [line for line in found[first.first : item.last] if split(line.text)[0] == item.prefix]
    return Saying(item.exception, began, match, _quote(chosen), child, True, len(found) - item.last)


def _of_last_lines(found: Sequence[Line], child: Child | None) -> Saying:
    """Without a traceback: a line that is known, else nothing but the last lines."""
    end = next((index + 1 for index in range(len(found) - 1, -1, -1) if found[index].text.strip()), 0)
    if not end:
        return Saying(child=child)
    for index in range(end - 1, max(-1, end - 1 - LOOKED_THROUGH), -1):
        match = known.of_line(split(found[index].text)[1])
        if match is not None:
            first = _first_of_block(found, index)
            quote = _quote(found[first : min(end, index + LAST_LINES)])
            return Saying(found[index].text.strip(), "", match, quote, child, False, len(found) - index - 1)
    return Saying(quote=_quote(found[max(0, end - LAST_LINES) : end]), child=child)


def _first_of_block(found: Sequence[Line], index: int) -> int:
    """Where what leads to the known line begins: the script's lines before a SyntaxError, the usage before
    argparse's error."""
    first = index
    text = found[index].text
    if text.startswith(_UNREAD) or ": error: " in text:
        while first and index - first < LAST_LINES and found[first - 1].text.startswith((" ", "usage:")):
            first -= 1
        return first
    return max(0, index - 4)


def _quote(chosen: Sequence[Line]) -> Quote | None:
    if not chosen:
        return None
    shown = [split(line.text)[1][:LONGEST_QUOTED_LINE] for line in chosen]
    at = shown[0].find(START)
    if at > 0 and not shown[0][:at].strip(" +|-"):
        at = 0
    # A progress bar may stand before it in the same line.
    shown[0] = shown[0][at:] if at > 0 and "Original" not in shown[0] else shown[0]
    if len(shown) > LONGEST_QUOTE:
        left_out = len(shown) - LONGEST_QUOTE
        shown = [*shown[:6], f"… {left_out} lines …", *shown[-(LONGEST_QUOTE - 6) :]]
    return Quote("\n".join(shown).rstrip(), chosen[0].offset)


def _without_launcher(found: Sequence[Line]) -> Sequence[Line]:
    """The lines before the launcher begins to speak of a failed child."""
    for index, line in enumerate(found):
        if ELASTIC in line.text and ("failed (exitcode" in line.text or "closing signal" in line.text):
            return found[:index]
    return found


def _first_failed(found: Sequence[Line]) -> Child | None:
    start = next(
        (index for index in range(len(found) - 1, -1, -1) if _FIRST_FAILURE in found[index].text), None
    )
    if start is None:
        return None
    told = {
        match[1]: int(match[2])
        for line in found[start : start + 8]
        if (match := _FAILED_CHILD.match(line.text))
    }
    return Child(told["rank"], told["exitcode"]) if {"rank", "exitcode"} <= told.keys() else None


def _ranks(found: Sequence[Line]) -> set[str]:
    return {prefix for line in found if line.text.startswith("[rank") and (prefix := split(line.text)[0])}
