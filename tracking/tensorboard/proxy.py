"""Passes requests of the sandboxed frame on to its TensorBoard, and the answers back.

The frame has an opaque origin: without `allow-same-origin` it has no cookies, no storage and no access to the
hub's pages and API. Its own requests are cross-origin, so the answers allow that to all who have a ticket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import httpx
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from tracking.tensorboard.sessions import PATH, SERVER_SEPARATOR, boards
from workspaces.servers.forwarding import OwnedRoute, at_owner
from workspaces.servers.ring import ring
from workspaces.servers.server_registry import OtherServer

# By this header even a tab of its own gets no rights here. Frames of other sites are refused.
SANDBOX = "sandbox allow-scripts allow-forms allow-popups allow-downloads; frame-ancestors 'self'"
MAX_BODY_BYTES = 4 * 2**20
TIMEOUT = httpx.Timeout(120, connect=5)
# Of TensorBoard's own scripts.
_OWN = ("content-type", "x-tensorboard-feature-flags", "x-xsrf-protected")
_PASSED_ON = (*_OWN, "accept", "accept-encoding", "if-none-match", "range")
_PASSED_BACK = (
    "content-type",
    "content-encoding",
    "content-length",
    "content-disposition",
    "etag",
    "cache-control",
)
PREFLIGHT = (
    ("access-control-allow-methods", "GET, POST"),
    ("access-control-allow-headers", ", ".join(_OWN)),
    ("access-control-max-age", "600"),
)
_SUBSTITUTES = "trainhub-substitutes.js"
# What browsers refuse to a page with an opaque origin and TensorBoard cannot do without: storages and
# cookies, which are kept in memory, and workers, which load their script by an address of their own.
SUBSTITUTES = """for (const name of ["localStorage", "sessionStorage"]) {
  const values = new Map();
  const storage = {
    getItem: (key) => values.get(String(key)) ?? null,
    setItem: (key, value) => void values.set(String(key), String(value)),
    removeItem: (key) => void values.delete(String(key)),
    clear: () => values.clear(),
    key: (index) => [...values.keys()][index] ?? null,
    get length() { return values.size; },
  };
  Object.defineProperty(window, name, { value: storage });
}
Object.defineProperty(document, "cookie", { get: () => "", set: () => {} });
window.Worker = class extends Worker {
  constructor(url, options) {
    const script = `importScripts(${JSON.stringify(new URL(url, location.href).href)})`;
    super(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), options);
  }
};
"""
WORKERS = "worker-src 'self' blob:"
ENDED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>TensorBoard has ended</title>
<p style="font: 14px system-ui; margin: 2rem">TensorBoard has ended, because nobody used it for a while or the
hub was started again. Reload the page around it, and start it again there.</p></html>"""


async def pass_on(request: Request) -> Response:
    board = boards.find(request.path_params["ticket"])
    if board is None:
        return _ended(404)
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=_headers(PREFLIGHT))
    if request.path_params["path"] == _SUBSTITUTES:
        return Response(SUBSTITUTES, media_type="text/javascript", headers=_headers([]))
    body = await _body(request)
    if body is None:
        return Response(f"At most {MAX_BODY_BYTES} bytes are accepted.", 413, headers=_headers([]))
    # Without TLS, whose trusted certificates take 15 ms to load.
    transport = httpx.AsyncHTTPTransport(uds=str(board.socket), verify=False)
    client = httpx.AsyncClient(transport=transport, timeout=TIMEOUT, trust_env=False)
    passed = [(name, request.headers[name]) for name in _PASSED_ON if name in request.headers]
    url = httpx.URL("http://tensorboard", raw_path=_raw_target(request))
    try:
        answer = await client.send(
            client.build_request(request.method, url, headers=passed, content=body), stream=True
        )
    except httpx.TransportError:
        await client.aclose()
        return _ended(502)
    return await _response(answer, client)


async def _response(answer: httpx.Response, client: httpx.AsyncClient) -> Response:
    headers = _headers(
        [
            *((name, answer.headers[name]) for name in _PASSED_BACK if name in answer.headers),
            *(
                ("content-security-policy", f"{policy};{WORKERS}")
                for policy in answer.headers.get_list("content-security-policy")
            ),
        ]
    )
    if answer.headers.get("content-type", "").startswith("text/html"):
        page = await answer.aread()
        await answer.aclose()
        await client.aclose()
        for name in ("content-length", "content-encoding", "etag"):
            headers.pop(name, None)
        return Response(_with_substitutes(page), answer.status_code, headers)

    async def close() -> None:
        await answer.aclose()
        await client.aclose()

    return StreamingResponse(_raw(answer), answer.status_code, headers, background=BackgroundTask(close))


def _ended(status: int) -> Response:
    policy = ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'")
    return HTMLResponse(ENDED, status, headers=_headers([policy]))


async def _raw(answer: httpx.Response) -> AsyncIterator[bytes]:
    async for chunk in answer.aiter_raw():
        yield chunk


def _with_substitutes(page: bytes) -> bytes:
    """Returns the page with the substitutes in front of all other scripts. It would request its fonts from
    the root of the host although it has a prefix."""
    page = page.replace(b"<head>", f'<head><script src="{_SUBSTITUTES}"></script>'.encode(), 1)
    return page.replace(b"url(/font-roboto/", b"url(font-roboto/")


def _headers(own: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns the headers of an answer to the frame. Several policies hold together."""
    headers = {
        "access-control-allow-origin": "null",
        "cross-origin-resource-policy": "cross-origin",
        "content-security-policy": SANDBOX,
        "referrer-policy": "no-referrer",
    }
    for name, value in own:
        headers[name] = f"{value}, {headers[name]}" if name == "content-security-policy" else value
    return headers


async def _body(request: Request) -> bytes | None:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return None
    return body


def _raw_target(request: Request) -> bytes:
    query = request.scope["query_string"]
    path: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return path + (b"?" + query if query else b"")


def _owner(request: Request) -> OtherServer | None:
    """Returns the server that has started the TensorBoard of this ticket; None if that is this one."""
    server = request.path_params["ticket"].partition(SERVER_SEPARATOR)[0]
    return next((peer for peer in ring.others if peer.id == server), None)


async def _admit(_: Request) -> None:
    """Nothing is known here of a ticket of another server; only who has one knows that server's id."""


passed_to_owner = at_owner("tensorboard", OwnedRoute(pass_on, _owner, _admit, MAX_BODY_BYTES))
routes = [Route(f"{PATH}/{{ticket:str}}/{{path:path}}", passed_to_owner, methods=["GET", "POST", "OPTIONS"])]
