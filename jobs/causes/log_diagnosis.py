"""Reads the failure of one process from the end of its log: quotes it and matches it to a known one. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobs.causes import failures
from jobs.causes.failures import FailureMatch
from jobs.causes.log_lines import LogLine, parse_lines
from jobs.causes.tracebacks import START, Chain, Traceback, find_chains, split_prefix

MAX_QUOTE_LINES = 40
MAX_QUOTED_LINE_LENGTH = 1000
LAST_LINES = 15
# Number of last lines that are searched if there is no traceback.
MAX_SEARCHED_LINES = 40
# Lines after an exception that may still belong to its message.
MAX_MESSAGE_LINES = 12
# An exception that ended the process stands at most this many lines before the log's end.
MAX_DISTANCE_LINES = 100
# Exceptions of C++ libraries, whose message continues in the lines below without indentation.
OPEN_TYPES = (
    "RuntimeError",
    "DistBackendError",
    "DistNetworkError",
    "DistStoreError",
    "InternalError",
    "UnknownError",
)
ELASTIC = "torch/distributed/elastic/"
# Errors that Python prints without a traceback for a script that it cannot parse.
_SYNTAX_ERRORS = ("SyntaxError: ", "IndentationError: ", "TabError: ")
# From torchrun's report about its child processes, in torch/distributed/elastic/multiprocessing/errors.
_FIRST_FAILURE = "Root Cause (first observed failure)"
_FAILED_CHILD = re.compile(r"\s+(rank|exitcode)\s+: (-?\d+)")


@dataclass(frozen=True)
class LogQuote:
    """Lines of a log; `offset` is the position of the first one in the log."""

    text: str
    offset: int


@dataclass(frozen=True)
class FailedChild:
    """The process of a launcher such as torchrun that failed first, with the launcher's number for it."""

    rank: int
    exit_code: int


@dataclass(frozen=True)
class LogDiagnosis:
    """`exception`: the line that names the error, or "". `began`: the first exception of a chain, if
    `exception` followed from it.

    `raised`: the exception has a traceback. `distance`: number of lines between the quote and the log's end.
    `is_far`: much output follows the traceback, so that the process may have survived the exception.
    """

    exception: str = ""
    began: str = ""
    match: FailureMatch | None = None
    quote: LogQuote | None = None
    child: FailedChild | None = None
    raised: bool = False
    distance: int = 0
    is_far: bool = False

    @property
    def is_echo(self) -> bool:
        return self.match is not None and bool(self.match.failure.echo)


def diagnose_log(tail: bytes, offset: int, *, launcher: bool = False) -> LogDiagnosis:
    """Returns the diagnosis of a log's tail, which begins at `offset`. `launcher`: several processes write
    into the log."""
    lines = parse_lines(tail, offset)
    child = _first_failed_child(lines)
    # torchrun starts several processes, and `[rank1]:` at the start of lines shows the same.
    has_several = launcher or child is not None or len(_rank_prefixes(lines)) > 1
    script_lines = _without_launcher(lines)
    all_chains = [chain for chain in (_own(chain) for chain in find_chains(lines)) if chain]
    # What a thread raised counts only where the process itself raised nothing.
    failure_chains = [chain for chain in all_chains if not chain[-1].is_in_thread] or all_chains
    ending = _ending(failure_chains, len(script_lines) if child else len(lines))
    if ending:
        chosen = _choose_chain(lines, ending, several=has_several, child=child)
        return _diagnose_chain(lines, chosen, child)
    last_lines = _diagnose_last_lines(script_lines, child)
    if failure_chains and last_lines.match is None:
        return replace(_diagnose_chain(lines, failure_chains[-1], child), is_far=True)
    return last_lines


def _own(chain: Chain) -> Chain:
    """Returns the chain without exceptions of launchers, or () if it did not end the process."""
    if any(item.is_ignored for item in chain):
        return ()
    return tuple(item for item in chain if item.exception and not item.is_from_launcher)


def _ending(failure_chains: Sequence[Chain], end: int) -> list[Chain]:
    """Returns the failures close to the end of the log; the process survived those before."""
    # A script may print tracebacks of exceptions that it has handled; those far from the end did not end it.
    near: list[Chain] = []
    for chain in reversed(failure_chains):
        if end - chain[-1].last > MAX_DISTANCE_LINES:
            break
        near.insert(0, chain)
        end = min(end, chain[0].first)
    return near


def _choose_chain(
    lines: Sequence[LogLine], ending: Sequence[Chain], *, several: bool, child: FailedChild | None
) -> Chain:
    """Returns the decisive failure: the last one of a single process, the first one of several.

    Failures that only followed from another rank's end come last."""
    own = [chain for chain in ending if not _is_echo(lines, chain)] or list(ending)
    if not several:
        return own[-1]
    named = [chain for chain in own if child and chain[-1].prefix == f"[rank{child.rank}]:"]
    return (named or own)[0]


def _is_echo(lines: Sequence[LogLine], chain: Chain) -> bool:
    match = _match(lines, _significant(lines, chain))
    return match is not None and bool(match.failure.echo)


def _significant(lines: Sequence[LogLine], chain: Chain) -> Traceback:
    """Returns the last traceback of the chain that did not just follow from another rank's end."""
    for item in reversed(chain):
        match = _match(lines, item)
        if match is None or not match.failure.echo:
            return item
    return chain[-1]


def _match(lines: Sequence[LogLine], item: Traceback) -> FailureMatch | None:
    """Returns the known failure that matches the exception: its own text first, then the lines after it."""
    words = [item.exception, *item.message]
    if item.type.rpartition(".")[2] in OPEN_TYPES:
        words += _following(lines, item)
    return next((match for line in words if (match := failures.match_line(line))), None)


def _following(lines: Sequence[LogLine], item: Traceback) -> list[str]:
    """Returns the lines right after the exception that the same process wrote."""
    bodies = []
    for line in lines[item.last : item.last + MAX_MESSAGE_LINES]:
        prefix, body = split_prefix(line.text)
        if START in line.text or ELASTIC in line.text or prefix != item.prefix:
            break
        bodies.append(body)
    return bodies


def _diagnose_chain(lines: Sequence[LogLine], chain: Chain, child: FailedChild | None) -> LogDiagnosis:
    item = _significant(lines, chain)
    match, began = _match(lines, item), ""
    for root in chain[: chain.index(item)]:
        at_root = _match(lines, root)
        if match is None and at_root is not None and not at_root.failure.echo:
            match, began = at_root, root.exception
    first = next((part for part in chain if part.exception == began), item) if began else item
    # Lines of other processes may stand in between.
    chosen = [line for line in lines[first.first : item.last] if split_prefix(line.text)[0] == item.prefix]
    return LogDiagnosis(item.exception, began, match, _quote(chosen), child, True, len(lines) - item.last)


def _diagnose_last_lines(lines: Sequence[LogLine], child: FailedChild | None) -> LogDiagnosis:
    """Returns the diagnosis of a log without a traceback: a line of a known failure, else the last lines."""
    end = next((index + 1 for index in range(len(lines) - 1, -1, -1) if lines[index].text.strip()), 0)
    if not end:
        return LogDiagnosis(child=child)
    for index in range(end - 1, max(-1, end - 1 - MAX_SEARCHED_LINES), -1):
        match = failures.match_line(split_prefix(lines[index].text)[1])
        if match is not None:
            first = _first_of_block(lines, index)
            quote = _quote(lines[first : min(end, index + LAST_LINES)])
            return LogDiagnosis(
                lines[index].text.strip(), "", match, quote, child, False, len(lines) - index - 1
            )
    return LogDiagnosis(quote=_quote(lines[max(0, end - LAST_LINES) : end]), child=child)


def _first_of_block(lines: Sequence[LogLine], index: int) -> int:
    """Returns the index where the context of the line begins: the script's lines before a SyntaxError, the
    usage before argparse's error."""
    first = index
    text = lines[index].text
    if text.startswith(_SYNTAX_ERRORS) or ": error: " in text:
        while first and index - first < LAST_LINES and lines[first - 1].text.startswith((" ", "usage:")):
            first -= 1
        return first
    return max(0, index - 4)


def _quote(chosen: Sequence[LogLine]) -> LogQuote | None:
    if not chosen:
        return None
    texts = [split_prefix(line.text)[1][:MAX_QUOTED_LINE_LENGTH] for line in chosen]
    at = texts[0].find(START)
    # This is the margin of an exception group, which belongs to the quote.
    if at > 0 and not texts[0][:at].strip(" +|-"):
        at = 0
    # A progress bar may precede the traceback in the same line.
    texts[0] = texts[0][at:] if at > 0 and "Original" not in texts[0] else texts[0]
    if len(texts) > MAX_QUOTE_LINES:
        omitted = len(texts) - MAX_QUOTE_LINES
        # The first lines name the entry point, the last ones the error; both are needed.
        texts = [*texts[:6], f"… {omitted} lines …", *texts[-(MAX_QUOTE_LINES - 6) :]]
    return LogQuote("\n".join(texts).rstrip(), chosen[0].offset)


def _without_launcher(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """Returns the lines before the launcher's report about a failed child."""
    for index, line in enumerate(lines):
        if ELASTIC in line.text and ("failed (exitcode" in line.text or "closing signal" in line.text):
            return lines[:index]
    return lines


def _first_failed_child(lines: Sequence[LogLine]) -> FailedChild | None:
    start = next(
        (index for index in range(len(lines) - 1, -1, -1) if _FIRST_FAILURE in lines[index].text), None
    )
    if start is None:
        return None
    # torchrun prints the fields of the first failure below this heading, one per line.
    values = {
        match[1]: int(match[2])
        for line in lines[start : start + 8]
        if (match := _FAILED_CHILD.match(line.text))
    }
    return FailedChild(values["rank"], values["exitcode"]) if {"rank", "exitcode"} <= values.keys() else None


def _rank_prefixes(lines: Sequence[LogLine]) -> set[str]:
    return {
        prefix for line in lines if line.text.startswith("[rank") and (prefix := split_prefix(line.text)[0])
    }
