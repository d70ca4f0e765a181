"""Completion of filters, based on what the parser expects at the cursor."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracking.history import key_catalog
from tracking.search import FilterError, parse
from tracking.search.tree import Key, quote
from tracking.search.vocabulary import ATTRIBUTES, DATASET_KEYS, KINDS, OPERATORS, AttributeType, KeyKind
from workspaces.models import Workspace

MAX_OFFERS = 40
# The word before the cursor: a prefix with a dot, and a name that may be in backticks that are still open.
_WORD = re.compile(r"(?:[^\W\d]\w*\.)?(?:`[^`]*|[\w./:@+-]*)$")
# Matches quoted text; the group is a quote without its end.
_QUOTES = re.compile(r"`(?:[^`]|``)*`|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(['\"])")
_SIGN = re.compile(r"[<>!=]+$")
TIMES = ("'1d ago'", "'7d ago'", "'30d ago'", "'today'", "'yesterday'")
DURATIONS = ("10min", "1h", "1d")


@dataclass(frozen=True)
class Offer:
    """`text` replaces everything from `begin` of the completion to the cursor."""

    text: str
    kind: str


@dataclass(frozen=True)
class Completion:
    begin: int
    offers: list[Offer]


def complete(workspace: Workspace, text: str, cursor: int) -> Completion:
    """Returns the offers for the word before the cursor."""
    before = text[:cursor]
    begin = _word_start(before)
    typed = before[begin:]
    expected, key = _expected_part(before[:begin])
    offers = _offers(workspace, expected, key, typed)
    return Completion(begin, [offer for offer in offers if offer.text != typed][:MAX_OFFERS])


def _word_start(before: str) -> int:
    """Returns the start of the word before the cursor; an open quote belongs to it."""
    for match in _QUOTES.finditer(before):
        if match[1]:
            return match.start()
    word = _SIGN.search(before) or _WORD.search(before)
    return word.start() if word else len(before)


def _expected_part(before: str) -> tuple[str, Key | None]:
    """Returns what the grammar expects after `before` (key, operator, value, list, joint or ""), and for
    which key."""
    try:
        tree = parse(before)
    except FilterError as error:
        # Only an error at the end says what may follow; an earlier one is a mistake in the text itself.
        at_end = error.position >= len(before.rstrip())
        return (error.expected if at_end else ""), error.key
    if tree is None:
        return "key", None
    # The text is a complete filter, so only AND or OR can follow.
    return "joint", None


def _offers(workspace: Workspace, expected: str, key: Key | None, typed: str) -> list[Offer]:
    if expected == "key":
        return _keys(workspace, typed)
    if expected == "operator" and key is not None:
        return [
            Offer(word, "operator") for word in OPERATORS[key.type] if word.lower().startswith(typed.lower())
        ]
    if expected == "value" and key is not None:
        return _values(workspace, key, typed)
    if expected == "list":
        return [Offer("(", "mark")]
    if expected == "joint":
        return [Offer(word, "word") for word in ("AND", "OR") if word.lower().startswith(typed.lower())]
    return []


def _keys(workspace: Workspace, typed: str) -> list[Offer]:
    prefix, dot, rest = typed.partition(".")
    catalog = key_catalog.workspace_keys(workspace)
    kinds = (
        [KINDS[prefix]]
        if dot and prefix in KINDS
        else [KeyKind.METRIC, KeyKind.PARAM, KeyKind.ATTRIBUTE, KeyKind.TAG, KeyKind.DATASET]
    )
    search = (rest if dot and prefix in KINDS else typed).strip("`").lower()
    ranked: list[tuple[bool, int, str, Offer]] = []
    for rank, kind in enumerate(kinds):
        names = (
            ATTRIBUTES
            if kind is KeyKind.ATTRIBUTE
            else DATASET_KEYS
            if kind is KeyKind.DATASET
            else catalog.of_kind(kind)
        )
        for name in names:
            # Names with this prefix come first.
            if search in name.lower() or (not dot and kind.value.startswith(search)):
                ranked.append(
                    (not name.lower().startswith(search), rank, name, Offer(str(Key(kind, name)), kind.value))
                )
    return [item[3] for item in sorted(ranked, key=lambda item: item[:3])]


def _values(workspace: Workspace, key: Key, typed: str) -> list[Offer]:
    if key.type is AttributeType.FLAG:
        return [Offer("true", "value"), Offer("false", "value")]
    if key.type is AttributeType.TIME:
        return [Offer(text, "value") for text in TIMES]
    if key.name == "duration" and key.kind is KeyKind.ATTRIBUTE:
        return [Offer(text, "value") for text in DURATIONS]
    if key.type in (KeyKind.METRIC, AttributeType.NUMBER):
        return []
    prefix = typed[1:] if typed[:1] in ("'", '"') else typed
    return [Offer(quote(text), "value") for text in key_catalog.matching_values(workspace, key, prefix)]
