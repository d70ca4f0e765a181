"""An authenticator app, and people who sign in with it."""

from __future__ import annotations

import re
import time

import pyotp
from django.test import Client

from tests.people import PASSWORD, client_of
from workspaces.authentication.factors import recovery
from workspaces.models import User

CODES = re.compile(r"<li>([a-z2-9]{5}-[a-z2-9]{5}-[a-z2-9]{5})</li>")
SECRET = re.compile(r'data-secret>.*?data-text="([A-Z2-7]{32})"', re.DOTALL)

# Of one code; a person, or a test, has this long to type it.
STEP_S, TYPED_WITHIN_S = 30, 3.0


class App:
    """An authenticator app. Each call of `code` gives another code that is valid now."""

    def __init__(self, secret: str) -> None:
        self._totp = pyotp.TOTP(secret)
        self._step = 0

    def code(self) -> str:
        # The code before the present one is valid, too, but not if it is typed in the last moment.
        self._step = max(self._step + 1, int(time.time() + TYPED_WITHIN_S) // STEP_S - 1)
        early_s = (self._step - 1) * STEP_S - time.time()
        if early_s > 0:
            time.sleep(early_s)
        return self._totp.generate_otp(self._step)


def set_up(user: User) -> tuple[App, list[str]]:
    """The person sets up an app on the page; also returns the recovery codes that it shows."""
    page = client_of(user)
    text = page.post("/settings/factors/app/", follow=True).content.decode()
    secret = SECRET.search(text)
    assert secret is not None, text
    assert "data:image/svg+xml" in text
    app = App(secret[1])
    answer = page.post("/settings/factors/app/confirm/", {"code": app.code()})
    codes = CODES.findall(answer.content.decode())
    assert len(codes) == recovery.COUNT
    assert answer.headers["Cache-Control"] == "no-store, no-transform"
    return app, codes


def first_step(name: str = "carl", **fields: str) -> Client:
    client = Client()
    answer = client.post("/sign-in/", {"username": name, "password": PASSWORD, **fields})
    assert answer.headers["Location"] == "/sign-in/second-step/"
    return client


def password_suffices() -> bool:
    answer = Client().post("/sign-in/", {"username": "carl", "password": PASSWORD})
    return answer.headers["Location"] == "/"


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200
