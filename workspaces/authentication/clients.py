"""Which program uses a token, as it calls itself, and what its person should know about it.

Apps on higher floors register what they know about the clients of their protocols, when they are ready."""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_LENGTH = 100
# The first product of the header User-Agent: mlflow-python-client/3.17.0, curl/7.88.1.
_PRODUCT = re.compile(r"([A-Za-z][\w.+-]{0,49})/(\d[\w.+-]{0,29})")
# Returns a sentence about a client, with the remedy; "" for one that is fine, or that it does not know.
Notice = Callable[[str, str], str]
_notices: list[Notice] = []


def register(notice: Notice) -> Notice:
    _notices.append(notice)
    return notice


def client_name(user_agent: str) -> str:
    """Returns `name/version` of the program behind a header User-Agent; "" if it names none."""
    match = _PRODUCT.match(user_agent)
    return f"{match[1]}/{match[2]}"[:MAX_LENGTH] if match else ""


def client_notice(client: str) -> str:
    """Returns a sentence for the person of a token that this client (`client_name`) has used; "" if there is
    nothing to say."""
    name, _, version = client.partition("/")
    sentences = (notice(name, version) for notice in _notices)
    return next((sentence for sentence in sentences if sentence), "")
