"""Reads the address of a package index or a repository, in which secrets may stand for its user and password,
as pip's requirements files have it: `https://user:${NAME}@host/simple`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

MAX_URL_LENGTH = 500
LOGIN_REMEDY = (
    "store it as a secret of the workspace at /settings/secrets/ and write ${NAME} with the secret's name in "
    "its place, such as https://user:${PASSWORD}@host/path"
)
_SECRET = re.compile(r"\$\{([A-Za-z0-9][A-Za-z0-9._-]{0,63})\}")
_USER = re.compile(r"[A-Za-z0-9._%+-]{1,100}\Z")


@dataclass(frozen=True)
class IndexCredentials:
    """How to sign in at an index. Each of both is a text, or `${NAME}` for the value of a secret."""

    username: str
    password: str

    @property
    def secret_names(self) -> frozenset[str]:
        return frozenset(_SECRET.findall(f"{self.username}{self.password}"))

    def with_values(self, values: Mapping[str, str]) -> IndexCredentials:
        """Returns these with the values of the secrets in place of their names. Raises KeyError if one is
        missing."""

        def filled(text: str) -> str:
            return _SECRET.sub(lambda match: values[match[1]], text)

        return IndexCredentials(filled(self.username), filled(self.password))


def read_index_address(
    text: str,
    subject: str = "an index",
    *,
    schemes: Collection[str] = ("http", "https"),
    remedy: str = LOGIN_REMEDY,
) -> tuple[str, IndexCredentials | None]:
    """Returns the address without what stands before its host, and the credentials that stand there, if any.
    `subject`: what is there; `remedy`: what to do with a password. Raises ValueError with a sentence."""
    try:
        parts: SplitResult | None = urlsplit(text)
        has_port = parts is not None and parts.port != 0
    except ValueError:
        parts, has_port = None, False
    if parts is None or parts.scheme not in schemes or not parts.hostname or not has_port:
        forms = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ValueError(f"the address of {subject} must be an {forms} address")
    user_info, separator, host = parts.netloc.rpartition("@")
    url = parts._replace(netloc=host).geturl()
    if (
        len(url) > MAX_URL_LENGTH
        or not url.isascii()
        or not url.isprintable()
        or re.search(r"[\s\"'$\\#]", url)
    ):
        raise ValueError(f"the address of {subject} must have at most {MAX_URL_LENGTH} plain characters")
    return url, _credentials(user_info, subject, remedy) if separator else None


def _credentials(user_info: str, subject: str, remedy: str) -> IndexCredentials:
    username, separator, password = user_info.partition(":")
    is_token = bool(_SECRET.fullmatch(username)) and not password
    if is_token:
        return IndexCredentials(username, "")
    if not separator or not _SECRET.fullmatch(password):
        raise ValueError(
            f"the address of {subject} must not hold a password, which everybody here could read; {remedy}"
        )
    if not (_SECRET.fullmatch(username) or _USER.match(username)):
        raise ValueError(
            f"the user of {subject} must have at most 100 letters, digits, '.', '_', '-' and '+'"
        )
    return IndexCredentials(unquote(username), password)
