"""Brings what this node has made to the hub, with the ticket of the order, which opens nothing else."""

from __future__ import annotations

import io
import json
import os
import time
from urllib import request

from trainhub_node.environments.hub_connection import error_reason, hub_opener, is_refusal
from trainhub_node.supervisor.gang import Gang, PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The hub may restart meanwhile.
MAX_OUTAGE_S = 180.0
RETRY_S = 2.0
# Of one answer; the hub writes a large file to its disk before it answers.
TIMEOUT_S = 120.0
MAX_ANSWER_BYTES = 65536
PIECE_BYTES = 1024 * 1024
NOT_FOUND, DISK_FULL = 404, 507
OCTETS = "application/octet-stream"


class _Body(io.RawIOBase):
    """A file that is sent; a stop request ends the sending."""

    def __init__(self, path: str, gang: Gang) -> None:
        super().__init__()
        self._file = open(path, "rb")  # noqa: SIM115 - closed by `close`
        self._gang = gang

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        # More than the HTTP client asks for at once: it sends what it gets.
        self._gang.check_stop()
        return self._file.read(max(size, PIECE_BYTES))

    def close(self) -> None:
        self._file.close()
        super().close()


class HubUpload:
    """The upload of one order. `part`: of the order, with the address and the ticket; `error_kind`: of what
    is raised if the hub does not take it."""

    def __init__(self, gang: Gang, part: str = "make", error_kind: str = "environment") -> None:
        self._gang = gang
        self._url = str(gang.order[part]["upload"])
        self._ticket = str(gang.order[part]["ticket"])
        self._error_kind = error_kind
        self._opener = hub_opener(gang, self._url)

    def put(self, path: str, sha256: str) -> bool:
        """Uploads the file unless the hub has it. Returns whether it was sent. Raises PreparationFailed, and
        StopRequested."""
        if self._call("HEAD", f"files/{sha256}", missing_is_fine=True) is not None:
            return False
        self._call("PUT", f"files/{sha256}", path=path)
        return True

    def get(self, address: str) -> bytes:
        """Returns what the hub has for this build at the address. Raises as `put`."""
        return self._call("GET", address) or b""

    def send_file(self, address: str, path: str) -> bytes:
        """Uploads the file to this address, and returns the answer. Raises as `put`."""
        return self._call("PUT", address, path=path) or b""

    def post(self, address: str, facts: Mapping[str, Any]) -> None:
        """Raises as `put`."""
        self._call("POST", address, data=json.dumps(facts).encode())

    def finish(self, result: Mapping[str, Any]) -> None:
        """Tells the hub what was made of the uploaded files. Raises as `put`; the hub's objection is in the
        sentence."""
        self.post("result/", result)

    def _call(
        self, method: str, address: str, *, path: str = "", data: bytes = b"", missing_is_fine: bool = False
    ) -> bytes | None:
        """Returns the answer; None if the hub answers 404 and that is fine. Repeats the request while the hub
        is out."""
        outage_since = 0.0
        while True:
            self._gang.check_stop()
            try:
                return self._open(method, address, path, data)
            except OSError as error:  # of the connection, or of the HTTP client
                code = getattr(error, "code", 0)
                if missing_is_fine and code == NOT_FOUND:
                    return None
                outage_since = outage_since or time.monotonic()
                is_over = time.monotonic() - outage_since > MAX_OUTAGE_S
                if is_over or is_refusal(error) or code == DISK_FULL:
                    raise PreparationFailed(self._error_kind, _sentence(error)) from error
                time.sleep(RETRY_S)

    def _open(self, method: str, address: str, path: str, data: bytes) -> bytes:
        headers = {"Authorization": f"Bearer {self._ticket}", "Accept": "application/json"}
        url = f"{self._url}/{address}"
        if not path:
            body = request.Request(url, data or None, headers, method=method)  # noqa: S310 - the hub's
            return self._answer(body)
        headers |= {"Content-Length": str(os.stat(path).st_size), "Content-Type": OCTETS}
        with _Body(path, self._gang) as file:
            body = request.Request(url, file, headers, method=method)  # noqa: S310
            return self._answer(body)

    def _answer(self, body: request.Request) -> bytes:
        with self._opener.open(body, timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read(MAX_ANSWER_BYTES)
            return content


def _sentence(error: OSError) -> str:
    """Returns what the hub objects to, or why it cannot be reached."""
    try:
        problem = json.loads(error.read(MAX_ANSWER_BYTES))  # type: ignore[attr-defined]
        return str(problem["detail"])
    except (AttributeError, ValueError, KeyError, TypeError, OSError):
        return f"The hub takes no result of this order: {error_reason(error)}."
