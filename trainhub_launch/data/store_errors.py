"""Says what is wrong when a store cannot be read, as a sentence with the remedy."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from trainhub_launch.data.stores import AZURE_BLOB, HUB, S3, SignIn, Store, is_sas, sas_end

# The classes of obstore's errors, by name: this package does not import it.
REFUSED = ("PermissionDeniedError", "UnauthenticatedError", "PermissionError")
MISSING, CHANGED = ("NotFoundError", "FileNotFoundError"), "PreconditionError"
NO_STORE = ("NoSuchBucket", "ContainerNotFound")
WRONG_KEY = ("InvalidAccessKeyId", "SignatureDoesNotMatch")
# Of a text that should be an account's key.
NO_KEY = "Invalid Access Key"
# What servers answer, in XML.
CODE = re.compile(r"<Code>([A-Za-z]{1,80})</Code>")
# The end of a chain of causes says what happened: `… source: …`, or a line of its own.
CAUSE = re.compile(
    r"(dns error|[Cc]onnection refused|timed out|certificate[^\"\n]{0,120}|[Nn]etwork is unreachable)"
)
# In place of the library's words, whatever their case.
CAUSE_WORDS = {
    "dns error": "its name has no address on this machine",
    "connection refused": "its server refuses the connection",
    "timed out": "its server does not answer in time",
}
REFRESH = "Refresh the dataset, and start the run with its new version."
USE_CHANGED = ' Or choose "if_changed": "use" for this input, and it reads what is there now.'
MAX_TEXT = 300
# Shorter ones are parts of ordinary words.
MIN_MASKED = 4


def explain(
    error: BaseException,
    store: Store,
    path: str,
    secret: str = "",
    *,
    is_listed: bool = False,
    action: str = "read",
) -> str:
    """Returns a sentence about an error of obstore. `secret`: the value with which the store was used, for
    what it says about itself; it is not in the sentence. `is_listed`: the file stands in the list of a
    dataset's version; `action`: what cannot be done, as a participle."""
    name, text = type(error).__name__, str(error)
    code = match[1] if (match := CODE.search(text)) else ""
    if code in NO_STORE:
        return f"There is no {str(store).removeprefix('the ')}: check its name and the endpoint."
    if name in MISSING and store.kind == HUB:
        return f"The hub has no {path} any more: upload the files of the dataset again, as its next version."
    if name in MISSING and is_listed:
        return missing(store, path)
    if name in MISSING:
        return f"{subject(store)} has no {path or 'such file'}: check the path and its capital letters."
    if name == CHANGED:
        return changed(store, path, is_listed=is_listed)
    if name in REFUSED or code in WRONG_KEY:
        return _refused(store, code, secret)
    if NO_KEY in text:
        return f"The value of the secret is neither a shared access signature nor a key of {store}."
    cause = match[1] if (match := CAUSE.search(text)) else code or _first_line(text, secret)
    cause = CAUSE_WORDS.get(cause.lower(), cause)
    return (
        f"{subject(store)} cannot be {action}: {cause}. Check its address, and that this machine reaches it."
    )


def explain_writing(error: BaseException, store: Store, path: str, secret: str = "") -> str:
    """Returns a sentence about an error of obstore while `path` was written; the rest as in `explain`."""
    text = str(error)
    code = match[1] if (match := CODE.search(text)) else ""
    if type(error).__name__ in REFUSED or code in WRONG_KEY:
        detail = f" ({code})" if code else ""
        if store.sign_in == SignIn.SECRET and store.kind == AZURE_BLOB and is_sas(secret):
            end = sas_end(secret)
            if end is not None and end < datetime.now(UTC):
                ended = f"{end.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
                return (
                    f"{subject(store)} refuses the shared access signature, which ended on {ended}{detail}: "
                    "make a new one with the rights to read, list, create and write, and store it under the "
                    "same secret."
                )
        return (
            f"{subject(store)} does not let these credentials write {path}{detail}: give them the right to "
            "write there, or name other ones in the datastore."
        )
    return explain(error, store, path, secret, action="written")


def explain_removing(error: BaseException, store: Store, path: str) -> str:
    """Returns a sentence about an error of obstore while what is below `path` was removed."""
    text = str(error)
    code = match[1] if (match := CODE.search(text)) else ""
    if type(error).__name__ in REFUSED or code in WRONG_KEY:
        detail = f" ({code})" if code else ""
        return (
            f"{subject(store)} does not let these credentials remove {path}{detail}: give them the rights to "
            "list and to delete, or remove it yourself."
        )
    return explain(error, store, path, action="changed")


def missing(store: Store, path: str) -> str:
    """Returns a sentence about a file that was listed and is not there any more."""
    return f"{subject(store)} has no {path} any more. {REFRESH}{USE_CHANGED}"


def explain_absence(store: Store) -> str:
    """Returns a sentence about a store that has nothing of a list any more."""
    return f"{subject(store)} has none of the files of this version any more. {REFRESH}"


def changed(store: Store, path: str, *, is_listed: bool) -> str:
    """Returns a sentence about a file that is not the one that was listed any more."""
    remedy = f"{REFRESH}{USE_CHANGED}" if is_listed else "Start the run again."
    return f"{subject(store)} has another {path} than when it was listed: it was changed meanwhile. {remedy}"


def subject(store: Store) -> str:
    """Returns the store as the beginning of a sentence."""
    text = str(store)
    return f"T{text[1:]}" if text.startswith("the ") else text


def _refused(store: Store, code: str, secret: str) -> str:
    detail = f" ({code})" if code else ""
    sentence = f"{subject(store)} refuses these credentials{detail}"
    if store.kind == HUB:
        return (
            f"The hub gives these files only to an attempt that reads them and is not over{detail}: start "
            "the run again."
        )
    if store.sign_in == SignIn.NODE:
        return f"{sentence}: give the role of this machine the right to list and read it."
    if store.sign_in == SignIn.NONE:
        return f"{subject(store)} is not public{detail}: name a secret with credentials in the datastore."
    if store.kind == AZURE_BLOB and is_sas(secret):
        return f"{sentence}: {_about_sas(secret)}"
    if store.kind == S3:
        return (
            f"{sentence}: check the id and the secret part of the access key, and that it may list and read."
        )
    return f"{sentence}: check the value of the secret."


def _about_sas(secret: str) -> str:
    end = sas_end(secret)
    remedy = "make a new one with the rights to read and list, and store it under the same secret."
    if end is not None and end < datetime.now(UTC):
        return f"the shared access signature ended on {end.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}; {remedy}"
    return f"the shared access signature must be for this container, and may read and list it; {remedy}"


def _first_line(text: str, secret: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
    return (line.replace(secret, "…") if len(secret) >= MIN_MASKED else line)[:MAX_TEXT]
