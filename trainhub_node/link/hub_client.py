"""The HTTP client for the hub: every request that the agent makes."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import msgpack

from trainhub_launch.addresses import is_loopback
from trainhub_launch.data.stores import HUB, TICKET, URL, Store
from trainhub_launch.errors import WireError
from trainhub_launch.json_types import JsonObject
from trainhub_launch.order import NodeOrder
from trainhub_launch.report import Ack, Report
from trainhub_node import __version__
from trainhub_node.intake import orders, secret_values
from trainhub_node.intake.secret_values import SecretValues
from trainhub_node.link.store_download import StoreDownloads, append_answer, range_headers

TIMEOUT = httpx.Timeout(30.0, connect=5.0)
# Shorter than the 5 s after which web servers close an idle connection, perhaps just as it is used again.
LIMITS = httpx.Limits(keepalive_expiry=4.0)
# OpenSSL's codes for certificates that are not valid yet, or no longer.
TIME_ERRORS = (9, 10)
AGENT = f"trainhub-node/{__version__}"
CAPABILITIES = "X-TrainHub-Capabilities"
# This node only reads its queue. An older one also writes to the broker, which its broker account may not
# permit any more.
READS_WAKE_UPS = "wake-ups:read-only"
CHECKPOINTS = "/api/v1/node/checkpoints/"
UPLOAD_CHUNK_BYTES = 8 * 1024 * 1024
UPLOAD_OFFSET = "Upload-Offset"
UPLOAD_COMPLETE = "Upload-Complete"


class HubError(Exception):
    """A request failed; the message says why."""


class HubUnavailable(HubError):
    """There is no answer, or an error that may be temporary (a restarting hub, a proxy, an overload)."""


class TokenRejected(HubError):
    """The hub does not accept this node's token."""


class RequestRejected(HubError):
    """The hub rejected the request permanently."""


class InvalidOrder(HubError):
    """This node cannot carry out the hub's order; another request would return the same order."""


class UploadOffsetMismatch(HubError):
    """The hub has another number of bytes of this upload."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the hub is at byte {offset}")
        self.offset = offset


class HubClient:
    """A thread-safe HTTP client of the hub. Connections are kept alive and shared. Methods raise HubError.

    `ca` (a file) or `pem`: the only certificate authority to trust. Without either, the authorities of this
    machine are trusted."""

    def __init__(self, url: str, token: str = "", ca: Path | None = None, pem: str = "") -> None:
        self._token = token
        self._client = http_client(url, ssl.create_default_context(cafile=ca, cadata=pem or None), token)
        self._store = StoreDownloads()

    def close(self) -> None:
        self._client.close()

    def config(self) -> dict[str, Any]:
        return _json_object(
            self.request("GET", "/api/v1/node/config/", headers={CAPABILITIES: READS_WAKE_UPS})
        )

    def server_time(self) -> float | None:
        """Returns Unix seconds from the Date header of the hub's web server, to the second; None without
        a valid one."""
        date = self.request("GET", "/healthz").headers.get("Date", "")
        try:
            # The header has whole seconds, so half a second is added as the most likely remainder.
            return parsedate_to_datetime(date).timestamp() + 0.5
        except ValueError:
            return None

    def enrol(self, token: str, name: str, hostname: str, *, replace: bool) -> dict[str, Any]:
        """Exchanges a join token for the node's own token, name and cluster."""
        body = {"token": token, "name": name, "hostname": hostname, "replace": replace}
        return _json_object(self.request("POST", "/api/v1/node/enrol/", json=body))

    def redeem(self, claim: JsonObject) -> dict[str, Any]:
        """Exchanges the claim code of an allocation for this node's token and name."""
        return _json_object(self.request("POST", "/api/v1/node/allocations/", json=claim))

    def claim(self, run: str, attempt: int, nonce: str, ports: list[int]) -> NodeOrder:
        body = {"run": run, "attempt": attempt, "nonce": nonce, "ports": ports}
        answer = self.request("POST", "/api/v1/node/claim/", json=body)
        try:
            return orders.parse(answer.json(), run, attempt)
        except (WireError, ValueError) as error:
            raise InvalidOrder(f"the hub's order cannot be carried out: {error}") from error

    def secrets(self, run: str, attempt: int, nonce: str) -> SecretValues:
        """Returns the values of the secrets that the order of this claim names."""
        body = {"run": run, "attempt": attempt, "nonce": nonce}
        answer = self.request("POST", "/api/v1/node/secrets/", json=body)
        try:
            return secret_values.parse(answer.json())
        except (WireError, ValueError) as error:
            raise HubUnavailable("the hub's answer with the secrets is invalid") from error

    def report(self, report: Report) -> Ack:
        headers = {"Content-Type": "application/msgpack"}
        body = msgpack.packb(report.to_wire())
        answer = self.request("POST", "/api/v1/node/report/", content=body, headers=headers)
        try:
            return Ack.from_wire(msgpack.unpackb(answer.content))
        except (WireError, ValueError, msgpack.UnpackException) as error:
            # Counts as an outage, so that the uplink sends the report again.
            raise HubUnavailable(f"the hub's answer to a report is invalid: {error}") from error

    def download_snapshot(self, sha256: str, to: Path) -> None:
        """Downloads the snapshot to `to`, from the end of a part that an earlier call left there. Raises
        HubError, and OSError of the local disk."""
        self.download(f"/api/v1/snapshots/{sha256}", to)

    def download_checkpoint_file(self, run: str, attempt: int, sha256: str, to: Path) -> None:
        """Downloads a file of the checkpoint with which the attempt begins, as `download_snapshot` does."""
        self.download(f"{CHECKPOINTS}{run}/{attempt}/files/{sha256}", to)

    def checkpoint_store(self, run: str, attempt: int) -> Store:
        """Returns the hub as a store, in whose folder `files` is what `download_checkpoint_file` reads."""
        address = str(self._client.base_url.join(f"{CHECKPOINTS}{run}/{attempt}"))
        return Store(HUB, settings={URL: address, TICKET: self._token})

    def download_manifest(self, run: str, attempt: int, sha256: str, to: Path) -> None:
        """Downloads the list of the files of a dataset that the attempt reads, as `download_snapshot`
        does."""
        self.download(f"/api/v1/node/manifests/{run}/{attempt}/{sha256}", to)

    def register_peer_server(self, address: str, port: int) -> dict[str, str]:
        """Tells the hub where this node gives data to others. Returns its new `certificate` and `key` as PEM,
        and `ticket_key` in hexadecimal digits: what opens the tickets of others."""
        answer = self.request("POST", "/api/v1/node/peer-server/", json={"address": address, "port": port})
        try:
            return {name: str(answer.json()[name]) for name in ("certificate", "key", "ticket_key")}
        except (ValueError, KeyError, TypeError) as error:
            raise HubUnavailable("the hub's answer about giving data to others is invalid") from error

    def announce_checkpoints(
        self, run: str, attempt: int, announced: JsonObject
    ) -> tuple[dict[str, int], dict[int, list[str]]]:
        """Tells the hub which checkpoints are here. Returns, by name, the number of each that it takes now,
        and the numbers of those whose files are to be removed from a datastore, each with the keys of files
        that stay."""
        answer = self.request("POST", f"{CHECKPOINTS}{run}/{attempt}/", json=announced)
        try:
            data = answer.json()
            numbers = {str(name): int(number) for name, number in data["numbers"].items()}
            # Earlier hubs keep all checkpoints themselves.
            surplus: dict[int, list[str]] = {int(number): [] for number in data.get("surplus", ())}
            for number, keys in data.get("shared_surplus", {}).items():
                surplus[int(number)] = list(map(str, keys))
            return numbers, surplus
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise HubUnavailable("the hub's answer about checkpoints is invalid") from error

    def deliver_checkpoint_part(self, run: str, attempt: int, number: int, part: JsonObject) -> None:
        """Tells the hub which files are this node's part of a checkpoint; they are uploaded already."""
        self.request("POST", f"{CHECKPOINTS}{run}/{attempt}/{number}/", json=part)

    def note_removed_checkpoints(
        self, run: str, attempt: int, numbers: Sequence[int], problem: str, partial: Sequence[int]
    ) -> None:
        """Tells the hub that nothing of these checkpoints is in the datastore any more, and of those in
        `partial` only what was to stay; `problem`: why that could not be done, as a sentence, "" if it
        was."""
        body: JsonObject = {"numbers": [*numbers], "problem": problem, "shared": [*partial]}
        self.request("POST", f"{CHECKPOINTS}{run}/{attempt}/removed/", json=body)

    def note_stored_outputs(
        self, run: str, attempt: int, files: Sequence[JsonObject], removed: Sequence[str] = ()
    ) -> None:
        """Tells the hub which outputs of the attempt are in a datastore, {"path", "size", "sha256"} each, and
        the paths of those that are not there any more."""
        body = {"files": [*files], "removed": [*removed]}
        self.request("POST", f"/api/v1/node/stored-outputs/{run}/{attempt}/", json=body)

    def download(self, address: str, to: Path) -> None:
        location = self._append(address, to, self._store.headers())
        if location and not self._store.append(location, to):
            self._append(address, to, {})

    def _append(self, address: str, to: Path, headers: dict[str, str]) -> str:
        """Adds what `to` lacks. Returns the address to which the hub sends for it, "" if it is complete."""
        try:
            with self._client.stream("GET", address, headers={**headers, **range_headers(to)}) as answer:
                if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                    return ""  # complete: the requested range would begin at its end
                if answer.status_code == httpx.codes.TEMPORARY_REDIRECT and headers:
                    return str(answer.headers.get("Location", ""))
                if answer.is_error:
                    answer.read()
                _check(answer)
                append_answer(answer, to)
        except httpx.HTTPError as error:
            raise HubUnavailable(describe_error(error)) from error
        return ""

    def upload_state(self, sha256: str) -> tuple[int, bool]:
        """Returns (bytes that the hub has, whether the upload is complete)."""
        answer = self.request("HEAD", f"/api/v1/uploads/{sha256}")
        return int(answer.headers.get(UPLOAD_OFFSET, 0)), answer.headers.get(UPLOAD_COMPLETE) == "true"

    def upload(self, sha256: str, data: bytes, offset: int, total: int) -> None:
        """Uploads one chunk of a file of `total` bytes. Raises UploadOffsetMismatch if the hub expects
        another offset."""
        span = f"bytes {offset}-{offset + len(data) - 1}/{total}" if data else f"bytes */{total}"
        headers = {"Content-Range": span, "Content-Type": "application/octet-stream"}
        self.request("PUT", f"/api/v1/uploads/{sha256}", content=data, headers=headers)

    def request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            answer = self._client.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise HubUnavailable(describe_error(error)) from error
        _check(answer)
        return answer


def http_client(url: str, verify: ssl.SSLContext, token: str = "") -> httpx.Client:
    headers = {"User-Agent": AGENT} | ({"Authorization": f"Bearer {token}"} if token else {})
    # Proxies from the environment are for other machines, not for a hub on this one.
    proxies = not is_loopback(httpx.URL(url).host)
    return httpx.Client(
        base_url=url, headers=headers, timeout=TIMEOUT, limits=LIMITS, trust_env=proxies, verify=verify
    )


def describe_error(error: httpx.HTTPError) -> str:
    """Returns the error as a phrase for the operator of the node."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            clock = (
                f" (this machine's clock says {datetime.now(UTC):%Y-%m-%d %H:%M} UTC)"
                if cause.verify_code in TIME_ERRORS
                else ""
            )
            return f"the hub's certificate does not hold: {cause.verify_message.rstrip('.')}{clock}"
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {error}"


def _check(answer: httpx.Response) -> None:
    code = answer.status_code
    if answer.is_success:
        return
    if code == httpx.codes.UNAUTHORIZED:
        raise TokenRejected("the hub does not accept this node: it was revoked, or joined again elsewhere")
    if code == httpx.codes.CONFLICT and UPLOAD_OFFSET in answer.headers:
        raise UploadOffsetMismatch(int(answer.headers[UPLOAD_OFFSET]))
    if code in (httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS) or answer.is_server_error:
        raise HubUnavailable(f"the hub answered {code}")
    raise RequestRejected(_problem_detail(answer))


def _json_object(answer: httpx.Response) -> JsonObject:
    try:
        return dict(answer.json())
    except (ValueError, TypeError) as error:
        raise HubUnavailable(f"what answers at {answer.url} is not a TrainHub") from error


def _problem_detail(answer: httpx.Response) -> str:
    """Returns the detail of a problem document (RFC 9457), or the status code."""
    try:
        problem = answer.json()
        return str(problem.get("detail") or problem["title"])
    except (ValueError, KeyError, AttributeError):
        return f"the hub answered {answer.status_code}"


def upload_chunks(total: int, start: int) -> Iterator[tuple[int, int]]:
    """Yields (offset, size) of every chunk of an upload from `start` on."""
    for offset in range(start, total, UPLOAD_CHUNK_BYTES):
        yield offset, min(UPLOAD_CHUNK_BYTES, total - offset)
