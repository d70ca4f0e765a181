"""The device flow of RFC 8628, from the side of the program."""

from __future__ import annotations

import json

import pytest

from tests.sdk.scripted_hub import Reply, ScriptedHub, problem
from trainhub_sdk import device_login
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import HubRefused, TrainHubError

CODES = {
    "device_code": "d",
    "user_code": "BCDF-GHJK",
    "verification_uri": "http://hub/device/",
    "verification_uri_complete": "http://hub/device/?code=BCDF-GHJK",
    "expires_in": 600,
    "interval": 5,
}
TOKEN = {
    "access_token": "t",
    "token_type": "Bearer",
    "scope": "submit",
    "workspace": "default",
    "expires_in": 60,
}
PENDING, SLOWER = problem(400, error="authorization_pending"), problem(400, error="slow_down")


def sign_in(
    *replies: Reply, lifetime_s: int = 600
) -> tuple[device_login.DeviceToken, list[float], ScriptedHub]:
    """Returns the token, the pauses between the requests, and the hub."""
    pauses: list[float] = []
    hub = ScriptedHub(Reply(201, json.dumps({**CODES, "expires_in": lifetime_s}).encode()), *replies)
    with hub.serving() as url:
        api = ApiConnection(url, retry_s=0)
        codes = device_login.begin(api, "trainhub on here", "submit")
        assert (codes.user_code, codes.page_with_code) == ("BCDF-GHJK", CODES["verification_uri_complete"])
        return device_login.await_token(api, codes, pauses.append), pauses, hub


def test_it_asks_until_a_person_has_allowed_it() -> None:
    token, pauses, hub = sign_in(PENDING, SLOWER, problem(429), Reply(body=json.dumps(TOKEN).encode()))[:3]
    assert (token.token, token.workspace, token.scope) == ("t", "default", "submit")
    assert pauses == [5, 5, 10, 20]
    assert json.loads(hub.requests[0].body) == {"name": "trainhub on here", "scope": "submit"}
    assert json.loads(hub.requests[1].body) == {"device_code": "d"}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("access_denied", "refused on the page"),
        ("expired_token", "Nobody allowed it in time"),
        ("invalid_grant", "does not know this request"),
    ],
)
def test_each_other_ending_is_a_sentence(error: str, sentence: str) -> None:
    with pytest.raises(TrainHubError, match=sentence):
        sign_in(problem(400, error=error))


def test_it_gives_up_when_the_codes_have_expired() -> None:
    with pytest.raises(TrainHubError, match="Nobody allowed it in time"):
        sign_in(PENDING, lifetime_s=12)


def test_any_other_answer_is_passed_on() -> None:
    with pytest.raises(HubRefused, match="You may not"):
        sign_in(problem(403, detail="You may not"))
