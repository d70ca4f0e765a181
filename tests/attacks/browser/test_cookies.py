"""S15: cookies know no ports, so the session is kept for a host name that no other program of the machine is
visited at."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest

from tests.hub import Hub, eventually
from tests.signing_in import page_client

pytestmark = pytest.mark.slow
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15"


@contextmanager
def another_program() -> Iterator[tuple[int, list[str]]]:
    """A program of a run at a port of the hub's machine: its port, and the cookies that browsers sent it."""
    cookies: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, cookies
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@pytest.mark.browser
class TestOtherPorts:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    def test_a_program_at_another_port_does_not_get_the_session(self, page: Any, host: str) -> None:
        with another_program() as (port, cookies):
            page.goto(f"http://{host}:{port}/")
            page.goto("/")
        assert [cookie for cookie in cookies if "session" in cookie or "csrf" in cookie] == []
        assert cookies, "the browser visited it"

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    def test_whoever_comes_by_an_address_signs_in_at_the_host_name(
        self, browser: Any, hub: Hub, host: str
    ) -> None:
        context = browser.new_context()
        tab = context.new_page()
        tab.goto(f"http://{host}:{hub.port}/runs/?q=a%20b")
        assert tab.url == f"{hub.browser_url}/sign-in/?next=/runs/%3Fq%3Da%2520b"
        tab.fill("input[name=username]", "admin")
        tab.fill("input[name=password]", hub.password)
        tab.press("input[name=password]", "Enter")
        tab.wait_for_url(f"{hub.browser_url}/runs/?q=a%20b")
        kept = {
            (cookie["domain"], cookie["name"]) for cookie in context.cookies() if "session" in cookie["name"]
        }
        assert kept == {("trainhub.localhost", hub.cookie("sessionid"))}
        context.close()

    def test_live_pages_work_at_the_host_name(self, page: Any) -> None:
        opened: list[str] = []
        page.on("websocket", lambda socket: opened.append(socket.url))
        page.goto("/")
        eventually(lambda: page.evaluate("1") and opened, what="a socket opens")
        assert opened[0].startswith("ws://trainhub.localhost:")


class TestRedirect:
    def ask(self, hub: Hub, host: str, agent: str = FIREFOX, mode: str = "navigate") -> httpx.Response:
        headers = {"Host": host, "User-Agent": agent, "Sec-Fetch-Mode": mode}
        return httpx.get(f"{hub.url}/sign-in/", params={"next": "/runs/"}, headers=headers)

    def test_keeps_the_port_of_a_tunnel(self, hub: Hub) -> None:
        answer = self.ask(hub, "localhost:9000")
        assert answer.status_code == httpx.codes.FOUND
        assert answer.headers["location"] == "http://trainhub.localhost:9000/sign-in/?next=%2Fruns%2F"

    @pytest.mark.parametrize("host", ["[::1]:9000", "127.0.0.1"])
    def test_is_for_every_address_of_this_machine(self, hub: Hub, host: str) -> None:
        assert self.ask(hub, host).headers["location"].startswith("http://trainhub.localhost")

    def test_is_not_for_the_host_name_itself(self, hub: Hub) -> None:
        assert self.ask(hub, f"trainhub.localhost:{hub.port}").status_code == httpx.codes.OK

    @pytest.mark.parametrize(
        ("agent", "mode"), [("python-httpx/0.28", ""), (SAFARI, "navigate"), (FIREFOX, "cors")]
    )
    def test_is_not_for_who_may_not_find_the_name(self, hub: Hub, agent: str, mode: str) -> None:
        assert self.ask(hub, f"127.0.0.1:{hub.port}", agent, mode).status_code == httpx.codes.OK

    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:x", "[::1", ""])
    def test_a_host_that_is_none_of_the_hubs_is_refused(self, hub: Hub, host: str) -> None:
        assert self.ask(hub, host).status_code == httpx.codes.BAD_REQUEST


class TestNames:
    def test_without_tls_they_name_this_hub(self, hub: Hub) -> None:
        names = {cookie.name for cookie in page_client(hub).cookies.jar}
        assert names == {f"trainhub_{hub.port}_sessionid", f"trainhub_{hub.port}_csrftoken"}

    def test_under_tls_browsers_take_them_from_this_host_alone(self, own_hub: Hub) -> None:
        """Behind a proxy that speaks TLS; the client here stands in for that proxy."""
        own_hub.settings["PUBLIC_URL"] = "https://hub.example.org"
        own_hub.start()
        with httpx.Client(base_url=own_hub.url, headers={"Host": "hub.example.org"}, timeout=30) as proxy:
            first = proxy.get("/sign-in/")
            token = first.cookies["__Host-csrftoken"]
            form = {"username": "admin", "password": own_hub.password, "csrfmiddlewaretoken": token}
            headers = {"Cookie": f"__Host-csrftoken={token}", "Origin": "https://hub.example.org"}
            answer = proxy.post("/sign-in/", data=form, headers=headers)
            assert answer.status_code == httpx.codes.FOUND, answer.text
        told = [
            value.lower() for answer in (first, answer) for value in answer.headers.get_list("set-cookie")
        ]
        assert {value.partition("=")[0] for value in told} == {"__host-csrftoken", "__host-sessionid"}
        for value in told:
            parts = {part.strip() for part in value.split(";")}
            assert {"secure", "path=/", "samesite=lax"} <= parts
            assert not [part for part in parts if part.startswith("domain")]
        assert "httponly" in next(value for value in told if "sessionid" in value)
        assert first.headers["strict-transport-security"] == "max-age=31536000"
