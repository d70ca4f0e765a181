"""Expands `$NAME` and `${NAME}` in arguments from the environment of one process; `$$` is a dollar.

Every rank's wrapper imports this module before the rank starts, so it imports nothing but the package's
errors and uses no regular expressions."""

from __future__ import annotations

from trainhub_launch.errors import UnknownVariable

# Not typing.TYPE_CHECKING: the import of `typing` would delay the start of every rank.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_START = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_REST = _START | frozenset("0123456789")


def expand(text: str, env: Mapping[str, str]) -> str:
    """Returns `text` with its references replaced. A dollar that starts no reference (`$1`, `$(x)`, a dollar
    at the end) is unchanged.

    Raises UnknownVariable for a name that `env` lacks. Values are not expanded again."""
    out: list[str] = []
    for piece, name in pieces(text):
        if not name:
            out.append(piece)
        elif name in env:
            out.append(env[name])
        else:
            raise UnknownVariable(name)
    return "".join(out)


def references(text: str) -> tuple[str, ...]:
    """Returns the names that `text` refers to, in order of appearance, each once."""
    return tuple(dict.fromkeys(name for _, name in pieces(text) if name))


def literal(text: str) -> str:
    """Returns `text` escaped so that `expand` yields it unchanged."""
    return text.replace("$", "$$")


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yields (literal text, "") or ("", name of a reference) for each part of `text`, in order."""
    at = 0
    while (dollar := text.find("$", at)) >= 0:
        yield text[at:dollar], ""
        after = dollar + 1
        braced = text[after : after + 1] == "{"
        start = after + braced
        end = _end_of_name(text, start)
        if text[after : after + 1] == "$":
            yield "$", ""
            # `$$` becomes one dollar here and the scan goes on behind both, so `$$NAME` yields the literal
            # `$NAME`.
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
