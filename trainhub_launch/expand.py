"""`$NAME` and `${NAME}` in arguments, from one process's environment; `$$` is a dollar.

The rank wrapper imports this before every rank: no imports but our own errors, no regular expressions.
"""

from __future__ import annotations

from trainhub_launch.errors import UnknownVariable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_START = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_REST = _START | frozenset("0123456789")


def expand(text: str, env: Mapping[str, str]) -> str:
    """`text` with its references replaced; a dollar that starts none (`$1`, `$(x)`, a last `$`) stays.

    Raises UnknownVariable for a name that `env` does not have. Values are not expanded again.
    """
    out: list[str] = []
    for piece, name in _pieces(text):
        if not name:
            out.append(piece)
        elif name in env:
            out.append(env[name])
        else:
            raise UnknownVariable(name)
    return "".join(out)


def references(text: str) -> tuple[str, ...]:
    """The names that `text` refers to, in order, each once."""
    return tuple(dict.fromkeys(name for _, name in _pieces(text) if name))


def literal(text: str) -> str:
    """`text` written so that `expand` gives it back unchanged."""
    return text.replace("$", "$$")


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """(literal text, "") and ("", name of a reference), in order."""
    at = 0
    while (dollar := text.find("$", at)) >= 0:
        yield text[at:dollar], ""
        after = dollar + 1
        braced = text[after : after + 1] == "{"
        start = after + braced
        end = _end_of_name(text, start)
        if text[after : after + 1] == "$":
            yield "$", ""
            at = after + 1
        elif end > start and (not braced or text[end : end + 1] == "}"):
            yield "", text[start:end]
            at = end + braced
        else:
            yield "$", ""
            at = after
    yield text[at:], ""


def _end_of_name(text: str, start: int) -> int:
    if text[start : start + 1] not in _START:
        return start
    end = start + 1
    while end < len(text) and text[end] in _REST:
        end += 1
    return end
