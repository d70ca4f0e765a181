"""Turns messages of uv into a sentence for the person who wrote the requirements."""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_LENGTH = 1500
_UNKNOWN = re.compile(r"Because (\S+) was not found in the package registry")
_NO_WHEEL = re.compile(r"(?:Because|because|And|and) (?:only )?(\S+) has no (?:usable )?wheels")
_NO_WHEEL_HINT = re.compile(r"Wheels are (?:required|available) for `([^`]+)`")
_NO_VERSION = re.compile(r"there (?:is|are) no versions? of ([^,]+?)(?: and |, )")
_URL = re.compile(r"Failed to fetch: `?([^`\s]+)")
_CREDENTIALS = re.compile(r"(https?://)[^/@\s]+@")
_NEEDS_PYTHON = re.compile(r"(\S+) (?:requires|depends on) Python ?([<>=!~][^\s,]*(?:,[<>=!~][^\s,]*)*)")
_ONLY = re.compile(r"Because only (\S+) is available and you require ([^\s,]+)")
_ONLY_THESE = re.compile(
    r"Because only the following versions of \S+ are available: (.+?) and you require ([^\s,]+)"
)
_OTHER_INDEXES = "By default, uv will only consider versions that are published on the first index"
_CONCLUSION = re.compile(r",? we can conclude that .*?(?= And because |\Z)")
_AVAILABLE = re.compile(r"only (\S+) is available")
_NAME = re.compile(r"[<>=!~\[;]")
_DEPENDS = re.compile(r"(\S+) depends? on ([^\s,]+(?:,[<>=!~][^\s,]*)*)")
_REQUIRE = re.compile(
    r"you require (\S+(?: and (?!all versions)[^\s,]+(?! (?:depends?|has|requires|was)\b))*)"
)
NO_MESSAGE = (
    "uv ended without a message: it may have reached its limit of memory or time. Pin versions, such as "
    "torch==2.13.0, or try again."
)


def explain(message: str, python: str, secrets: Mapping[str, str] | None = None) -> str:
    """Returns why the requirements could not be resolved for this version of Python, and what to do.
    `secrets`: the names of those with which the hub signed in, by the address of the index."""
    text = " ".join(_CREDENTIALS.sub(r"\1****@", message).replace("cause: ", " ").split())
    if not text:
        return NO_MESSAGE
    sentence = (
        _network(text, secrets or {})
        or _unknown(text)
        or _without_wheel(text, python)
        or _other_python(text, python)
        or _no_version(text)
        or _conflict(text)
    )
    return sentence or _shortened(text)


def _network(text: str, secrets: Mapping[str, str]) -> str:
    match = _URL.search(text)
    if "401 Unauthorized" in text or "403 Forbidden" in text:
        return _refused_login(match[1] if match else "", text, secrets)
    if match is None:
        return ""
    if "timed out" in text.lower():
        return f"The index did not answer in time at {match[1]}; check its address, or try again later."
    return f"The index could not be read at {match[1]}; check its address, or try again later."


def _refused_login(url: str, text: str, secrets: Mapping[str, str]) -> str:
    index = next((index for index in secrets if index in (url or text)), "")
    if index:
        return (
            f"The index at {index} refuses the user or the secret {secrets[index]}. Store its right value at "
            "/settings/secrets/, and make the version again."
        )
    where = f" at {url}" if url else ""
    return (
        f"The index{where} asks for a password. Store it as a secret of the workspace at /settings/secrets/, "
        "and name the index as https://user:${NAME}@host/simple with the secret's name."
    )


def _unknown(text: str) -> str:
    match = _UNKNOWN.search(text)
    if match is None:
        return ""
    return (
        f"No index has a package {match[1]}. Check its spelling, or name the index that has it with a line "
        "--extra-index-url."
    )


def _without_wheel(text: str, python: str) -> str:
    match = _NO_WHEEL.search(text) or _NO_WHEEL_HINT.search(text)
    if match is None or ("no usable wheels" not in text and "has no wheels" not in text):
        return ""
    name = _NAME.split(match[1])[0]
    return (
        f"{match[1]} has no wheel for Python {python} on Linux (x86-64). Choose a version that has one, or "
        f"another version of Python, or let a node build it from source with the line "
        f"--no-binary {name}."
    )


def _other_python(text: str, python: str) -> str:
    match = _NEEDS_PYTHON.search(text)
    if match is None:
        return ""
    return f"{match[1]} needs Python {match[2]}, and this is for Python {python}. Change one of the two."


def _no_version(text: str) -> str:
    only = _ONLY.search(text)
    if only is not None:
        return f"No index has {only[2]}, only {only[1]}. Change the version."
    these = _ONLY_THESE.search(text)
    if these is not None:
        versions, required = these[1].replace(" ", ", "), these[2]
        if _OTHER_INDEXES in text:
            return (
                f"The first index that has the package, which alone is asked for it, lacks {required}; it "
                f"has {versions}. Change the version."
            )
        return f"No index has {required}, only {versions}. Change the version."
    match = _NO_VERSION.search(text)
    if match is None or " depends on " in text:
        return ""
    return f"No index has a version {match[1]}. Change the version, or leave it out for the newest one."


def _conflict(text: str) -> str:
    """Returns which packages want different versions of the same one."""
    if "unsatisfiable" not in text:
        return ""
    premises = _CONCLUSION.sub("", text)
    needs = _DEPENDS.findall(premises)
    facts = [f"{package} needs {needed}" for package, needed in needs]
    facts += [f"there is only {one}" for one in _AVAILABLE.findall(premises) if _concerns(one, needs)]
    required = [item.strip(" ,.") for item in _REQUIRE.findall(premises)]
    own = f"the requirements name {' and '.join(dict.fromkeys(required))}" if required else ""
    reasons = "; ".join(dict.fromkeys(filter(None, [*facts, own])))
    if not reasons:
        return ""
    return _shortened(f"These versions do not fit together: {reasons}. Change one of them.")


def _concerns(available: str, needs: list[tuple[str, str]]) -> bool:
    """Returns whether the versions that are available are of a package that another one needs."""
    names = {_NAME.split(needed)[0] for _, needed in needs}
    return _NAME.split(available)[0] in names


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"
