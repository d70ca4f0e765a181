"""Errors of the store, and the sentences that say which setting to look at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workspaces.object_store.configuration import StoreConfiguration

# What servers answer, in XML.
ERROR_CODE = re.compile(r"<Code>([A-Za-z]{1,80})</Code>")
_STATUS = re.compile(r"\b(?:status(?: code)?:?|error) (\d{3})\b")
_CAUSE = re.compile(
    r"(dns error|[Cc]onnection refused|timed out|certificate[^\"\n]{0,120}|[Nn]etwork is unreachable)"
)
_WRONG_KEY = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken")
_SKEWED = ("RequestTimeTooSkewed", "RequestExpired")
_REFUSED = ("PermissionDeniedError", "UnauthenticatedError", "PermissionError")
_MISSING = ("NotFoundError", "FileNotFoundError")


class StoreUnavailable(OSError):
    """The store did not do what it was asked for; the message is a sentence with the remedy. `is_lasting`:
    trying again does not help before somebody has changed something."""

    def __init__(self, sentence: str, *, is_lasting: bool = False) -> None:
        super().__init__(sentence)
        self.is_lasting = is_lasting


class ObjectMissing(StoreUnavailable):
    """The store has no object of this name, or no upload."""


class BucketMissing(StoreUnavailable):
    """The store has no bucket of this name."""


def store_error(error: BaseException, configuration: StoreConfiguration) -> StoreUnavailable:
    """Returns the error of the library as one of these."""
    name, text = type(error).__name__, str(error)
    code = match[1] if (match := ERROR_CODE.search(text)) else ""
    bucket = configuration.bucket
    if code == "NoSuchBucket":
        sentence = (
            f"There is no bucket {bucket} at {_where(configuration)}: make it, let the hub make it "
            "(BLOB_STORE_MAKE_BUCKET=1), or correct BLOB_STORE or BLOB_STORE_ENDPOINT."
        )
        return BucketMissing(sentence, is_lasting=True)
    if code in _SKEWED:
        sentence = (
            f"The store of {bucket} refuses requests of this time ({code}): the clock of this machine, or "
            "that of the store, is wrong. Set both by NTP."
        )
        return StoreUnavailable(sentence, is_lasting=True)
    if code in _WRONG_KEY:
        sentence = (
            f"The store of {bucket} refuses the access key ({code}): check BLOB_STORE_KEY_ID and "
            "BLOB_STORE_SECRET."
        )
        return StoreUnavailable(sentence, is_lasting=True)
    if name in _MISSING:
        return ObjectMissing(f"The bucket {bucket} has no such object{f' ({code})' if code else ''}.")
    if name in _REFUSED:
        sentence = (
            f"The bucket {bucket} does not let the access key work there ({code or 'access denied'}): give "
            f"it the rights to read, write and delete objects below {configuration.place}/, or name another "
            "key in BLOB_STORE_KEY_ID and BLOB_STORE_SECRET."
        )
        return StoreUnavailable(sentence, is_lasting=True)
    return StoreUnavailable(
        f"The store of {bucket} at {_where(configuration)} cannot be used now: {_reason(text, code)}. Check "
        "that it works, that this machine reaches it, and BLOB_STORE_ENDPOINT."
    )


def _where(configuration: StoreConfiguration) -> str:
    return configuration.endpoint or "AWS"


def _reason(text: str, code: str) -> str:
    if match := _CAUSE.search(text):
        cause = match[1]
        words = {
            "dns error": "its name has no address on this machine",
            "connection refused": "it refuses the connection",
            "timed out": "it does not answer in time",
        }
        return words.get(cause.lower(), cause)
    status = f"status {match[1]}" if (match := _STATUS.search(text)) else ""
    stated = ", ".join(filter(None, (status, code)))
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
    return f"it answers {stated}" if stated else first[:200]
