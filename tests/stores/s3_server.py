"""A small server of S3's protocol: lists, sends and takes objects, checks signatures, and does what a test
wants to go wrong. Everything of the bucket PUBLIC is also there without credentials, as on a web server."""

from __future__ import annotations

import hashlib
import itertools
import re
import threading
import time
from collections import deque
from datetime import timedelta
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from tests.stores.held_answers import wait_while_held
from tests.stores.s3_signatures import RequestSignature, split_query

BUCKET, PUBLIC = "birds", "public"
REGION = "us-east-1"
PAGE = 1000
BLOCK = 65536
MODIFIED_AT = 1_790_000_000
NAMES = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


class S3Server(ThreadingHTTPServer):
    """`objects`: bucket -> key -> content. `statuses`: answers to the next GETs of objects, in their order.
    `rate`: bytes a second that pass in all. `hold_from`: bytes of objects from this
    one on are not sent. `lists`: while it is not set, nothing is listed. `takes`: while it is not set,
    nothing is taken, and `waiting` says whether somebody waits for that. `sent`: bytes of objects that were
    sent. `deletes`: whether it does what it is told to delete. `is_away`: everything is answered by 503.
    `lost_uploads`: so many uploads in parts are lost before they are complete. `is_listing_late`: objects
    that were written since are in no list. `skew`: by how much its clock is ahead. `makes_buckets`: whether
    the access key may make buckets."""

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
        self.is_away = False
        self.makes_buckets = True
        self.lost_uploads = 0
        self.is_listing_late = False
        self.late: set[str] = set()
        self.skew = timedelta()
        self.sent = 0
        # Of objects that arrive in parts: id -> number of the part -> content.
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.upload_numbers = itertools.count()
        self.requests: list[str] = []
        self.authorizations: list[str] = []
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
        self.pace(count)

    def pace(self, count: int) -> None:
        """Waits until so many bytes may have passed."""
        with self._lock:
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

    def do_DELETE(self) -> None:
        self._take()

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        self.server.requests.append(f"{self.command} {unquote(parts.path)}")
        self.server.authorizations.append(self.headers.get("Authorization", ""))
        if bucket not in self.server.objects:
            self._fail(HTTPStatus.NOT_FOUND, "NoSuchBucket")
        elif bucket != PUBLIC and (code := self._wrong_signature()):
            self._fail(HTTPStatus.FORBIDDEN, code)
        elif self.server.is_away:
            self._fail(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable")
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
        parts, query = urlsplit(self.path), dict(split_query(urlsplit(self.path).query))
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        self.server.requests.append(f"{self.command} {unquote(parts.path)}")
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.pace(len(content))
        upload = query.get("uploadId", "")
        if not self.server.takes.is_set():
            self.server.waiting = True
            self.server.takes.wait()
        if bucket not in self.server.objects and (key or self.command != "PUT"):
            self._fail(HTTPStatus.NOT_FOUND, "NoSuchBucket")
        elif code := self._wrong_signature(content):
            self._fail(HTTPStatus.FORBIDDEN, code)
        elif self.command == "PUT" and not key:
            self._make_bucket(bucket)
        elif self.server.is_away:
            self._fail(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable")
        elif self.server.statuses:
            self._fail(self.server.statuses.popleft(), "SlowDown")
        elif "delete" in query:
            self._delete(self.server.objects[bucket], content)
        elif "uploads" in query:
            upload = f"upload-{next(self.server.upload_numbers)}"
            self.server.uploads[upload] = {}
            self._body(
                f"<InitiateMultipartUploadResult{NAMES}><UploadId>{upload}</UploadId>"
                "</InitiateMultipartUploadResult>"
            )
        elif upload and self._is_lost(upload):
            self._fail(HTTPStatus.NOT_FOUND, "NoSuchUpload")
        elif self.command == "DELETE":
            # Only of unfinished uploads: names to delete come in one request.
            self.server.uploads.pop(upload, None)
            self._body("", HTTPStatus.NO_CONTENT)
        elif self.command == "PUT" and upload:
            self.server.uploads[upload][int(query["partNumber"])] = content
            self._taken(content)
        elif upload:
            numbered = self.server.uploads.pop(upload)
            self._store(bucket, key, b"".join(numbered[number] for number in sorted(numbered)))
            self._body(
                f"<CompleteMultipartUploadResult{NAMES}><ETag>{upload}</ETag></CompleteMultipartUploadResult>"
            )
        else:
            self._store(bucket, key, content)
            self._taken(content)

    def _make_bucket(self, bucket: str) -> None:
        if bucket in self.server.objects:
            self._fail(HTTPStatus.CONFLICT, "BucketAlreadyOwnedByYou")
        elif not self.server.makes_buckets:
            self._fail(HTTPStatus.FORBIDDEN, "AccessDenied")
        else:
            self.server.objects[bucket] = {}
            self._body("")

    def _store(self, bucket: str, key: str, content: bytes) -> None:
        self.server.objects[bucket][key] = content
        if self.server.is_listing_late:
            self.server.late.add(key)

    def _is_lost(self, upload: str) -> bool:
        if self.command == "POST" and self.server.lost_uploads:
            # Only now, so that all parts have been sent in vain.
            self.server.lost_uploads -= 1
            self.server.uploads.pop(upload, None)
        return upload not in self.server.uploads

    def _wrong_signature(self, content: bytes | None = None) -> str:
        signature = RequestSignature(self.command, self.path, self.headers, self.server.skew)
        return signature.problem(content)

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
        keys = [key for key in keys if key not in self.server.late]
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
        data = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode() if text else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'
