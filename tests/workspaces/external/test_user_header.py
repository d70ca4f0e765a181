"""People whom a reverse proxy names in a header, over real connections from the proxy's address and from
others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pyotp
import pytest

from tests.hub import Hub
from trainhub.env import EnvError
from trainhub.web.sign_in import external_sign_in

pytestmark = pytest.mark.slow
PROXY, ELSEWHERE = "127.0.7.7", "127.0.7.8"
FORGET_CONFIRMATIONS = """
from django.contrib.sessions.models import Session
from django.contrib.sessions.backends.db import SessionStore
for row in Session.objects.all():
    store = SessionStore(row.session_key)
    store.pop("password_confirmed_at", None)
    store.save()
"""
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


@pytest.fixture(scope="module")
def proxied_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    running = Hub(
        tmp_path_factory.mktemp("proxied-hub") / "data",
        REMOTE_USER_HEADER="Remote-User",
        REMOTE_USER_PROXIES=PROXY,
        REMOTE_USER_NAME_HEADER="Remote-Name",
        REMOTE_USER_MAIL_HEADER="Remote-Email",
        REMOTE_USER_GROUPS_HEADER="Remote-Groups",
        SIGN_IN_GROUPS="cn=vision,ou=groups=default:contributor; leads=default:owner",
        TRUSTED_PROXIES=PROXY,
    )
    running.is_recorded = True
    yield running.start()
    running.stop()


@contextmanager
def browser_at(hub: Hub, address: str, cookies: httpx.Cookies | None = None) -> Iterator[httpx.Client]:
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=hub.url, transport=transport, timeout=60, cookies=cookies) as client:
        client.headers["Referer"] = hub.url
        yield client


def named(name: str, groups: str = "leads", **more: str) -> dict[str, str]:
    return {"Remote-User": name, "Remote-Groups": groups, "X-Forwarded-For": "192.0.2.1", **more}


def csrf_token(client: httpx.Client, name: str, path: str = "/settings/") -> str:
    token = CSRF.search(client.get(path, headers=named(name)).text)
    assert token is not None
    return token[1]


def test_the_proxy_signs_people_in(proxied_hub: Hub) -> None:
    with browser_at(proxied_hub, PROXY) as client:
        headers = named("ada", **{"Remote-Name": "Ada Lovelace", "Remote-Email": "ada@example.org"})
        answer = client.get("/runs/", headers=headers)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/runs/")
        page = client.get("/runs/", headers=headers).text
        assert "Ada Lovelace (ada)" in page
        profile = client.get("/settings/profile/", headers=headers).text
        assert "ada@example.org" in profile
        assert "by group" in client.get("/settings/", headers=headers).text
    with proxied_hub.client() as client:
        event = client.get("/api/v1/audit/?text=ada").json()["results"][0]
    assert (event["verb"], event["detail"]["way"]) == ("person.signed_in", "proxy")
    assert event["detail"]["address"] == "192.0.2.1", "of the person, not of the proxy"


def test_nobody_else_does(proxied_hub: Hub) -> None:
    for address in (ELSEWHERE, "127.0.0.1"):
        with browser_at(proxied_hub, address) as client:
            for headers in (named("admin"), named("admin", **{"X-Forwarded-For": PROXY})):
                assert client.get("/", headers=headers).headers["Location"].startswith("/sign-in/")


@pytest.mark.parametrize(
    "headers",
    [
        [("Remote-User", "mallory"), ("Remote-User", "ada")],
        [("Remote_User", "mallory")],
        [("Remote-User", "")],
        [("Remote-User", b"m\xff")],
        [("Remote-User", "x" * 256)],
    ],
    ids=["twice", "underscore", "empty", "no text", "long"],
)
def test_a_doubtful_header_signs_nobody_in(proxied_hub: Hub, headers: list[tuple[str, str | bytes]]) -> None:
    raw = [(name.encode(), value.encode() if isinstance(value, str) else value) for name, value in headers]
    with browser_at(proxied_hub, PROXY) as client:
        answer = client.get("/", headers=[*raw, (b"Remote-Groups", b"leads")])
        assert answer.headers["Location"].startswith("/sign-in/")


def test_a_session_lasts_as_long_as_the_proxy_names_its_person(proxied_hub: Hub) -> None:
    with browser_at(proxied_hub, PROXY) as client:
        client.get("/", headers=named("bob"))
        assert client.get("/", headers=named("bob")).status_code == 200
        copy = client.cookies
        with browser_at(proxied_hub, ELSEWHERE, copy) as thief:
            assert thief.get("/", headers=named("bob")).headers["Location"].startswith("/sign-in/")
        answer = client.get("/", headers=named("carla"))
        assert answer.headers["Location"] == "/"
        assert ">carla<" in client.get("/", headers=named("carla")).text


def test_a_name_of_an_existing_account_is_refused(proxied_hub: Hub) -> None:
    with browser_at(proxied_hub, PROXY) as client:
        client.get("/", headers=named("admin"))
        page = client.get("/sign-in/", headers=named("admin")).text
        assert "Somebody here is called admin already." in page


def test_groups_with_commas_and_their_end(proxied_hub: Hub) -> None:
    with browser_at(proxied_hub, PROXY) as client:
        groups = "cn=other,ou=groups; cn=vision,ou=groups"
        client.get("/", headers=named("dora", groups))
        assert "contributor of" in client.get("/", headers=named("dora", groups)).text
    with browser_at(proxied_hub, PROXY) as client:
        client.get("/", headers=named("dora", "none"))
        page = client.get("/sign-in/", headers=named("dora", "none")).text
        assert "You are not a member of any workspace here." in page


def test_changes_need_no_password_and_a_csrf_token(proxied_hub: Hub) -> None:
    with browser_at(proxied_hub, PROXY) as client:
        client.get("/", headers=named("emil"))
        proxied_hub.manage("shell", "-c", FORGET_CONFIRMATIONS)
        form = {"name": "laptop", "csrfmiddlewaretoken": csrf_token(client, "emil")}
        answer = client.post("/settings/tokens/", data={"name": "x"}, headers=named("emil"))
        assert answer.status_code == 403, "without a CSRF token"
        answer = client.post("/settings/tokens/", data=form, headers=named("emil"))
        assert "th_" in answer.text
        answer = client.post("/settings/tokens/", data=form)
        assert answer.headers["Location"].startswith("/sign-in/"), "not named by the proxy"


def test_a_second_factor_is_asked_for(proxied_hub: Hub) -> None:
    with browser_at(proxied_hub, PROXY) as client:
        client.get("/", headers=named("finn"))
        shell = (
            "from django.utils import timezone\n"
            "from workspaces.authentication.factors import totp\n"
            "from workspaces.models import *\n"
            "user = User.objects.get(username='finn')\n"
            "totp.begin_setup(user)\n"
            "print('secret', totp.setup_secret(user))\n"
            "TotpDevice.objects.filter(user=user).update(confirmed_at=timezone.now())"
        )
        secret = proxied_hub.manage("shell", "-c", shell).stdout.split("secret ")[1].split()[0]
    with browser_at(proxied_hub, PROXY) as client:
        answer = client.get("/runs/", headers=named("finn"))
        assert answer.headers["Location"] == "/sign-in/second-step/"
        token = csrf_token(client, "finn", "/sign-in/second-step/")
        assert client.get("/runs/", headers=named("finn")).status_code == 302, "not in yet"
        form = {"code": pyotp.TOTP(secret).now(), "csrfmiddlewaretoken": token}
        answer = client.post("/sign-in/second-step/", data=form, headers=named("finn"))
        assert answer.headers["Location"] == "/runs/"
        assert client.get("/runs/", headers=named("finn")).status_code == 200
        with browser_at(proxied_hub, ELSEWHERE, client.cookies) as thief:
            assert thief.get("/runs/").status_code == 302


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"REMOTE_USER_HEADER": "Remote-User"}, "needs REMOTE_USER_PROXIES"),
        ({"REMOTE_USER_HEADER": "Remote-User", "REMOTE_USER_PROXIES": "x"}, "REMOTE_USER_PROXIES=x must"),
    ],
)
def test_the_header_without_proxies_is_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EnvError, match=words):
        external_sign_in()
