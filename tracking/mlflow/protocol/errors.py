"""MLflow's error codes: its client raises an exception with the same code."""

from __future__ import annotations

INVALID = "INVALID_PARAMETER_VALUE"
MISSING = "RESOURCE_DOES_NOT_EXIST"
EXISTS = "RESOURCE_ALREADY_EXISTS"
DENIED = "PERMISSION_DENIED"
UNAUTHENTICATED = "UNAUTHENTICATED"
NO_ENDPOINT = "ENDPOINT_NOT_FOUND"
INTERNAL = "INTERNAL_ERROR"
BUSY = "TEMPORARILY_UNAVAILABLE"

# HTTP statuses as MLflow's server sends them. Its client retries a 5xx for minutes, so only temporary
# failures get one.
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


class MlflowError(Exception):
    """An error response of the protocol. `message` names the field and the remedy; `status` overrides the
    HTTP status of the code."""

    def __init__(self, code: str, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = STATUS[code] if status is None else status
