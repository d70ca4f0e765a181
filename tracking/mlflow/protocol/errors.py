"""Refusals in MLflow's words: its client turns them into exceptions with the same code."""

from __future__ import annotations

INVALID = "INVALID_PARAMETER_VALUE"
MISSING = "RESOURCE_DOES_NOT_EXIST"
EXISTS = "RESOURCE_ALREADY_EXISTS"
DENIED = "PERMISSION_DENIED"
UNAUTHENTICATED = "UNAUTHENTICATED"
NO_ENDPOINT = "ENDPOINT_NOT_FOUND"
INTERNAL = "INTERNAL_ERROR"
BUSY = "TEMPORARILY_UNAVAILABLE"

STATUS = {
    INVALID: 400,
    MISSING: 404,
    EXISTS: 400,
    DENIED: 403,
    UNAUTHENTICATED: 401,
    NO_ENDPOINT: 404,
    INTERNAL: 500,
    BUSY: 503,
}
"""As MLflow's server answers. Its client tries 5xx again for minutes: only what may pass by itself gets
one."""


class MlflowError(Exception):
    """`message` is a sentence that names the field and the remedy; `status` where it differs from the code's
    own."""

    def __init__(self, code: str, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = STATUS[code] if status is None else status
