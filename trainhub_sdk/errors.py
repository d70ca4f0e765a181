"""What can go wrong between a program and its hub. Each message is a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class FieldProblem(NamedTuple):
    """What is wrong with one field of a request. `field` is a JSON path such as `resources.cluster`."""

    field: str
    message: str


class TrainHubError(Exception):
    """The base of all errors of this package."""


class NoProfile(TrainHubError):
    """It is not known which hub to use, or with which token."""


class HubUnreachable(TrainHubError):
    """There was no answer. `address`: of the hub."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"The hub at {address} cannot be reached: {reason}. Check the address, and that it runs."
        )
        self.address = address
        self.reason = reason


class ConnectionBroken(HubUnreachable):
    """The connection broke in the middle of an answer."""


class RunFailed(TrainHubError):
    """A run that was waited for has not completed. `run`: as it ended."""

    def __init__(self, message: str, run: Any) -> None:
        super().__init__(message)
        self.run = run


class FolderRefused(TrainHubError):
    """A source folder cannot be sent."""


class FolderTooLarge(FolderRefused):
    """A source folder has more files or bytes than allowed."""


class UploadError(TrainHubError):
    """A file of this machine cannot be uploaded."""


class ConfigRefused(TrainHubError):
    """The configuration of another launcher cannot become a spec. `findings`: all that was said about it,
    the errors among them."""

    def __init__(self, message: str, findings: Sequence[Any]) -> None:
        super().__init__(message)
        self.findings = findings


class HubRefused(TrainHubError):
    """The hub has answered with an error. `status`: of HTTP; `problems`: one for each wrong field, if the hub
    named fields; `body`: the answer as JSON, empty if it was none; `version_note`: what to do if the versions
    of hub and program do not fit, else ""."""

    def __init__(self, status: int, message: str, body: Mapping[str, Any], version_note: str = "") -> None:
        super().__init__(f"{message}\n{version_note}" if version_note else message)
        self.status = status
        self.version_note = version_note
        self.body = body
        self.problems: list[FieldProblem] = [
            FieldProblem(str(error.get("field", "")), str(error.get("message", "")))
            for error in _objects(body.get("errors"))
        ]


class SignInNeeded(HubRefused):
    """The hub does not know the token, or it has expired or was revoked."""


class NotAllowed(HubRefused):
    """The token, or its person, may not do this."""


class NotFound(HubRefused):
    """There is no such thing, or it belongs to another workspace."""


def refusal(status: int, title: str, body: Mapping[str, Any], version_note: str = "") -> HubRefused:
    """Returns the error for an answer of the hub. `title`: of HTTP, for an answer without an explanation."""
    # MLflow's protocol has the explanation in `message`.
    text = body.get("detail") or body.get("message") or body.get("title") or title or "no explanation"
    detail = str(text).rstrip(".")
    if status == 401:
        return SignInNeeded(status, f"{detail}. Sign in again: trainhub login", body)
    kind = {403: NotAllowed, 404: NotFound}.get(status, HubRefused)
    if status >= 500:
        detail = f"The hub failed with an error of its own ({status}): {detail}"
    return kind(status, detail if detail.endswith("?") else f"{detail}.", body, version_note)


def _objects(value: Any) -> Sequence[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
