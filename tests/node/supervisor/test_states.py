"""The supervisor writes phases, reasons and kinds of errors as strings: `enum` would stay in its memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from trainhub_launch.states import ErrorKind, Phase, StopReason

SUPERVISOR = Path(__file__).resolve().parents[3] / "trainhub_node"
# Those whose first argument is such a word.
FUNCTIONS = {"enter", "_stop", "PreparationFailed"}


def words(function: str) -> set[str]:
    return {word for name, word in _calls() if name == function}


def _calls() -> Iterator[tuple[str, str]]:
    for folder in ("supervisor", "environments"):
        for path in sorted((SUPERVISOR / folder).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                word = node.args[0]
                if name in FUNCTIONS and isinstance(word, ast.Constant) and isinstance(word.value, str):
                    yield name, word.value


def test_every_phase_that_it_enters_is_one() -> None:
    assert words("enter") == {Phase.PREPARING, Phase.READY, Phase.RUNNING}


def test_every_reason_for_which_it_stops_is_one() -> None:
    # Without a reason: the deciding ranks have ended, and what they left behind is cleaned up.
    assert words("_stop") == {"", StopReason.TIMEOUT, StopReason.GANG}


def test_every_kind_of_error_is_one() -> None:
    assert words("PreparationFailed") <= set(ErrorKind)
    assert {ErrorKind.ENVIRONMENT, ErrorKind.LAUNCH} <= words("PreparationFailed")
