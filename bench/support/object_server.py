"""A fast server of S3's protocol over files of one size, which it makes up, without signatures: `python -m
bench.support.object_server PORT COUNT BYTES [ADDRESS]`. The clients are measured, not the server."""

from __future__ import annotations

import sys
from email.utils import formatdate
from urllib.parse import parse_qs

import uvicorn
from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, HTTPScope, Scope

PAGE = 1000
BLOCK = 1024 * 1024
MODIFIED = formatdate(1_790_000_000, usegmt=True).encode()
XMLNS = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


class ObjectServer:
    """`count` objects of `size` bytes: 000000.bin, 000001.bin, …"""

    def __init__(self, count: int, size: int) -> None:
        self._keys = [f"{number:06d}.bin" for number in range(count)]
        self._size = size
        self._block = bytes(range(256)) * (BLOCK // 256)

    async def __call__(self, scope: Scope, _: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http":
            return
        key = scope["path"].lstrip("/").partition("/")[2]
        if key:
            await self._send_object(scope, send, key)
        else:
            await self._answer(send, 200, self._page(parse_qs(scope["query_string"].decode())))

    def _page(self, query: dict[str, list[str]]) -> bytes:
        after = (query.get("continuation-token") or query.get("marker") or [""])[0]
        begin = int(after[:6]) + 1 if after else 0
        keys = self._keys[begin : begin + PAGE]
        is_cut = begin + PAGE < len(self._keys)
        rows = "".join(
            f"<Contents><Key>{key}</Key><Size>{self._size}</Size><ETag>&quot;{key}&quot;</ETag>"
            "<LastModified>2026-09-21T14:13:20.000Z</LastModified>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for key in keys
        )
        last = f"<NextContinuationToken>{keys[-1]}</NextContinuationToken><NextMarker>{keys[-1]}</NextMarker>"
        return (
            f"<ListBucketResult{XMLNS}><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
            f"{last if is_cut else ''}{rows}</ListBucketResult>"
        ).encode()

    async def _send_object(self, scope: HTTPScope, send: ASGISendCallable, key: str) -> None:
        begin, end, status = 0, self._size, 200
        for name, value in scope["headers"]:
            if name == b"range":
                first, _, last = value.decode().removeprefix("bytes=").partition("-")
                begin, end, status = int(first), min(int(last) + 1, self._size) if last else self._size, 206
        headers = [
            (b"content-length", str(end - begin).encode()),
            (b"etag", f'"{key}"'.encode()),
            (b"last-modified", MODIFIED),
        ]
        if status == 206:
            headers.append((b"content-range", f"bytes {begin}-{end - 1}/{self._size}".encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers, "trailers": False})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        while begin < end:
            block = self._block[: min(end - begin, BLOCK)]
            if begin == 0:
                # No two objects have the same content, which a client might keep once.
                block = key.encode() + block[len(key) :]
            begin += len(block)
            await send({"type": "http.response.body", "body": block, "more_body": begin < end})

    async def _answer(self, send: ASGISendCallable, status: int, body: bytes) -> None:
        headers = [(b"content-length", str(len(body)).encode()), (b"content-type", b"application/xml")]
        await send({"type": "http.response.start", "status": status, "headers": headers, "trailers": False})
        await send({"type": "http.response.body", "body": body, "more_body": False})


if __name__ == "__main__":
    port, count, size = map(int, sys.argv[1:4])
    host = sys.argv[4] if len(sys.argv) > 4 else "127.0.0.1"
    uvicorn.run(ObjectServer(count, size), host=host, port=port, log_level="error", http="httptools")
