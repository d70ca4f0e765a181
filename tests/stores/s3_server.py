"""A small server of S3's protocol: lists, sends and takes objects, checks signatures, and does what a test
wants to go wrong. Everything of the bucket PUBLIC is also there without credentials, as on a web server."""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
import time
from collections import deque
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from tests.stores.held_answers import wait_while_held

BUCKET, PUBLIC = "birds", "public"
KEY_ID, SECRET = "AKIATEST", "the-secret-part-of-the-key"
REGION = "us-east-1"
PAGE = 1000
BLOCK = 65536
MODIFIED_AT = 1_790_000_000
NAMES = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


class S3Server(ThreadingHTTPServer):
    """`objects`: bucket -> key -> content. `statuses`: answers to the next GETs of objects, in their order.
    `rate`: bytes a second that all answers together get. `hold_from`: bytes of objects from this
    one on are not sent. `lists`: while it is not set, nothing is listed. `takes`: while it is not set,
    nothing is taken, and `waiting` says whether somebody waits for that. `sent`: bytes of objects that were
    sent. `deletes`: whether it does what it is told to delete."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, address: str = "127.0.0.1", port: int = 0, objects: dict[str, bytes] | None = None
    ) -> None:
        super().__init__((address, port), _Handler)
        self.objects: dict[str, dict[str, bytes]] = {BUCKET: objects or {}, PUBLIC: {}}
        self.statuses: deque[int] = deque()
        self.rate: float | None = None
        self.hold_from: int | None = None
        self.lists = threading.Event()
        self.lists.set()
        self.takes = threading.Event()
        self.takes.set()
        self.waiting = False
        self.deletes = True
        self.sent = 0
        # Of objects that arrive in parts: id -> number of the part -> content.
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[str] = []
        self._lock = threading.Lock()
        self._free_at = 0.0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def account(self, count: int) -> None:
        """Counts bytes before they are sent, and waits as the rate asks."""
        with self._lock:
            self.sent += count
            if self.rate is None:
                return
            self._free_at = max(self._free_at, time.monotonic()) + count / self.rate
            wait_s = self._free_at - time.monotonic()
        time.sleep(max(0.0, wait_s))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: S3Server

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._take()

    def do_POST(self) -> None:
        self._take()

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        self.server.requests.append(f"{self.command} {unquote(parts.path)}")
        if bucket not in self.server.objects:
            self._fail(HTTPStatus.NOT_FOUND, "NoSuchBucket")
        elif bucket != PUBLIC and (code := self._wrong_signature()):
            self._fail(HTTPStatus.FORBIDDEN, code)
        elif not key:
            self._list(self.server.objects[bucket], dict(parse_qsl(parts.query)))
        elif key not in self.server.objects[bucket]:
            self._fail(HTTPStatus.NOT_FOUND, "NoSuchKey")
        elif self.command == "GET" and self.server.statuses:
            self._fail(self.server.statuses.popleft(), "SlowDown")
        else:
            self._send(self.server.objects[bucket][key])

    def _take(self) -> None:
        """PUT of an object or of a part of one, POST of the beginning or the end of one with parts, or of
        names to delete."""
        parts, query = urlsplit(self.path), dict(_query(urlsplit(self.path).query))
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        self.server.requests.append(f"{self.command} {unquote(parts.path)}")
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        upload = query.get("uploadId", "")
        if not self.server.takes.is_set():
            self.server.waiting = True
            self.server.takes.wait()
        if bucket not in self.server.objects:
            self._fail(HTTPStatus.NOT_FOUND, "NoSuchBucket")
        elif code := self._wrong_signature():
            self._fail(HTTPStatus.FORBIDDEN, code)
        elif self.server.statuses:
            self._fail(self.server.statuses.popleft(), "SlowDown")
        elif "delete" in query:
            self._delete(self.server.objects[bucket], content)
        elif "uploads" in query:
            upload = f"upload-{len(self.server.uploads)}"
            self.server.uploads[upload] = {}
            self._body(
                f"<InitiateMultipartUploadResult{NAMES}><UploadId>{upload}</UploadId>"
                "</InitiateMultipartUploadResult>"
            )
        elif self.command == "PUT" and upload:
            self.server.uploads[upload][int(query["partNumber"])] = content
            self._taken(content)
        elif upload:
            numbered = self.server.uploads.pop(upload)
            self.server.objects[bucket][key] = b"".join(numbered[number] for number in sorted(numbered))
            self._body(
                f"<CompleteMultipartUploadResult{NAMES}><ETag>{upload}</ETag></CompleteMultipartUploadResult>"
            )
        else:
            self.server.objects[bucket][key] = content
            self._taken(content)

    def _delete(self, objects: dict[str, bytes], content: bytes) -> None:
        if not self.server.deletes:
            self._fail(HTTPStatus.FORBIDDEN, "AccessDenied")
            return
        keys = [unescape(key) for key in re.findall(r"<Key>([^<]*)</Key>", content.decode())]
        for key in keys:
            objects.pop(key, None)
        rows = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self._body(f"<DeleteResult{NAMES}>{rows}</DeleteResult>")

    def _taken(self, content: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("ETag", etag(content))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _list(self, objects: dict[str, bytes], query: dict[str, str]) -> None:
        self.server.lists.wait()
        after, prefix = query.get("continuation-token", ""), query.get("prefix", "")
        keys = [key for key in sorted(objects) if key.startswith(prefix) and key > after]
        page = keys[:PAGE]
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[key])}</Size>"
            f"<ETag>{escape(etag(objects[key]))}</ETag>"
            "<LastModified>2026-09-21T14:13:20.000Z</LastModified></Contents>"
            for key in page
        )
        more = (
            f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if len(keys) > PAGE else ""
        )
        is_cut = "true" if more else "false"
        self._body(
            f"<ListBucketResult{NAMES}><IsTruncated>{is_cut}</IsTruncated>{more}{rows}</ListBucketResult>"
        )

    def _send(self, content: bytes) -> None:
        tag = etag(content)
        if self.headers.get("If-Match", tag) != tag:
            self._fail(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed")
            return
        start, end, status = 0, len(content), HTTPStatus.OK
        if text := self.headers.get("Range", ""):
            first, _, last = text.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1, len(content)) if last else len(content)
            status = HTTPStatus.PARTIAL_CONTENT
        self.send_response(status)
        if status == HTTPStatus.PARTIAL_CONTENT:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", tag)
        self.send_header("Last-Modified", formatdate(MODIFIED_AT, usegmt=True))
        self.end_headers()
        if self.command == "HEAD":
            return
        for offset in range(start, end, BLOCK):
            if not wait_while_held(self.server, self.connection, offset):
                self.close_connection = True
                return
            block = content[offset : min(offset + BLOCK, end)]
            self.server.account(len(block))
            try:
                self.wfile.write(block)
            except (BrokenPipeError, ConnectionResetError):
                # A test has killed the other side.
                self.close_connection = True
                return

    def _fail(self, status: int, code: str) -> None:
        self._body(f"<Error><Code>{code}</Code><Message>no</Message></Error>", status)

    def _body(self, text: str, status: int = HTTPStatus.OK) -> None:
        data = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _wrong_signature(self) -> str:
        """Returns the code of the error, "" for a right signature of version 4."""
        named = dict(_query(urlsplit(self.path).query))
        if "X-Amz-Signature" in named:
            return self._wrong_address(named)
        words = self.headers.get("Authorization", "").replace(",", " ").split()
        fields = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        key_id, _, scope = fields.get("Credential", "").partition("/")
        if key_id != KEY_ID:
            return "InvalidAccessKeyId" if key_id else "AccessDenied"
        right = self._signature(
            scope,
            self.headers["x-amz-date"],
            fields["SignedHeaders"].split(";"),
            self.headers["x-amz-content-sha256"],
        )
        return "" if hmac.compare_digest(right, fields["Signature"]) else "SignatureDoesNotMatch"

    def _wrong_address(self, named: dict[str, str]) -> str:
        """The same for an address that is signed, and for a time only."""
        key_id, _, scope = named["X-Amz-Credential"].partition("/")
        signed_at = datetime.strptime(named["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if key_id != KEY_ID:
            return "InvalidAccessKeyId"
        if datetime.now(UTC) > signed_at + timedelta(seconds=int(named["X-Amz-Expires"])):
            return "AccessDenied"
        headers = named["X-Amz-SignedHeaders"].split(";")
        right = self._signature(scope, named["X-Amz-Date"], headers, "UNSIGNED-PAYLOAD")
        return "" if hmac.compare_digest(right, named["X-Amz-Signature"]) else "SignatureDoesNotMatch"

    def _signature(self, scope: str, date: str, headers: list[str], payload: str) -> str:
        parts = urlsplit(self.path)
        query = sorted(
            (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
            for name, value in _query(parts.query)
            if name != "X-Amz-Signature"
        )
        canonical = "\n".join(
            [
                self.command,
                parts.path,
                "&".join(f"{name}={value}" for name, value in query),
                *(f"{name}:{' '.join(self.headers[name].split())}" for name in headers),
                "",
                ";".join(headers),
                payload,
            ]
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = "\n".join(["AWS4-HMAC-SHA256", date, scope, digest])
        key = f"AWS4{SECRET}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.new(key, text.encode(), "sha256").hexdigest()


def _query(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text, keep_blank_values=True)


def etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'
