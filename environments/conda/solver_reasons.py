"""Turns the reasons of the solver into a sentence for the person who wrote the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from environments.conda.environment_file import EnvironmentFile

MAX_LENGTH = 1500
MAX_VERSIONS = 12
_NONE = re.compile(r"No candidates were found for ([a-z0-9_][a-z0-9_.-]*) ?([^\n]*?)\.?\n")
_NEED = re.compile(
    r"─ ([a-z0-9_][a-z0-9_.-]*) ([^\n]+?) would require\n[\s│]*[├└]─ ([a-z0-9_][a-z0-9_.-]*) ([^\n,]+)"
)
_URL = re.compile(r"(?:url|channel) [('`]*((?:https?|file)://[^\s)'`]+)")
_STATUS = re.compile(r"\b(40[134])\b")
_BRANCH = re.compile(r"[\s│├└─]+")


def unsolvable_sentence(result: Mapping[str, Any], source: EnvironmentFile, max_s: int) -> str:
    """Returns why the environment could not be solved within `max_s` seconds, and what to do."""
    message = f"{result.get('message', '').strip()}\n"
    match result["error"]:
        case "timeout":
            return (
                f"Solving took more than {max_s} seconds. Pin versions, such as numpy=2.1, check that the "
                f"channels answer ({', '.join(source.channels)}), or try again."
            )
        case "channel":
            return _channel(message)
        case "dependency":
            return f"A dependency cannot be read: {_one_line(message)}. Write one such as numpy=2.1."
        case "unsolvable":
            return _unsolvable(message, result.get("versions", {}), source)
    return (
        "The solver ended before it had a result: it may have reached its limit of memory or time. Pin "
        "versions, such as numpy=2.1, or try again."
    )


def _channel(message: str) -> str:
    match = _URL.search(message)
    where = f" at {match[1]}" if match else ""
    status = _STATUS.search(message)
    if status and status[1] in ("401", "403"):
        return f"The channel{where} asks for a password; name a mirror that needs none."
    if "timed out" in message.lower():
        return f"The channel did not answer in time{where}; check its address, or try again later."
    if "could not find subdir" in message or (status and status[1] == "404"):
        return f"There is no channel{where}: it has no index. Check its name."
    return f"The channel could not be read{where}; check its address, or try again later."


def _unsolvable(message: str, versions: Mapping[str, list[str]], source: EnvironmentFile) -> str:
    match = _NONE.search(message)
    if match is not None:
        return _missing(match[1], match[2].strip(), versions)
    needs = _NEED.findall(message)
    for _, _, name, _ in needs:
        if name == "__cuda":
            return _missing(name, "", versions)
    facts = [f"{name} {version} needs {needed} {condition}" for name, version, needed, condition in needs]
    names = {needed for _, _, needed, _ in needs}
    facts += [f"no channel has a package {name}" for name in sorted(names) if versions.get(name) == []]
    own = _own(source, names)
    if own:
        facts.append(f"the file names {' and '.join(own)}")
    if not facts:
        return _shortened(f"These packages do not fit together: {_one_line(message)}. Change one of them.")
    return _shortened(
        f"These packages do not fit together: {'; '.join(dict.fromkeys(facts))}. Change one of them."
    )


def _missing(name: str, condition: str, versions: Mapping[str, list[str]]) -> str:
    if name == "__cuda":
        return (
            "A package needs CUDA, and the file does not say which version the nodes' drivers support. Add "
            "it to the dependencies, such as - __cuda=12.4, or choose a build for CPUs."
        )
    available = versions.get(name, [])
    if not available:
        return f"No channel has a package {name}. Check its spelling, or add the channel that has it."
    listing = ", ".join(available[-MAX_VERSIONS:])
    only = f"only {listing}" if len(available) <= MAX_VERSIONS else f"but {listing} and older ones"
    return f"No channel has {name} {condition}, {only}. Change the version."


def _own(source: EnvironmentFile, names: Iterable[str]) -> list[str]:
    """Returns the dependencies of the file that name one of these packages."""
    all_names = set(names)
    return [
        text
        for text in source.names
        if re.split(r"[\s=<>!~\[]", text.rpartition("::")[2].lower())[0] in all_names
    ]


def _one_line(message: str) -> str:
    text = message.removeprefix("Cannot solve the request because of: ")
    lines = (_BRANCH.sub(" ", line).strip() for line in text.splitlines())
    return " ".join(filter(None, lines)).rstrip(".")


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"
