"""Signing a program in that has no browser, by the device flow of RFC 8628."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from trainhub_sdk.api_connection import OVERLOADED, ApiConnection
from trainhub_sdk.errors import HubRefused, HubUnreachable, TrainHubError

SLOWER_S = 5
LONGEST_INTERVAL_S = 60
_ENDINGS = {
    "access_denied": "The request was refused on the page.",
    "expired_token": "Nobody allowed it in time. Begin again: trainhub login",
    "invalid_grant": "The hub does not know this request any more. Begin again: trainhub login",
}


class DeviceCodes(NamedTuple):
    """What a person needs: `user_code` and the address `page`, in `page_with_code` with the code filled in.
    `device_code` fetches the token; the hub is asked every `interval_s`, for at most `lifetime_s`."""

    device_code: str
    user_code: str
    page: str
    page_with_code: str
    interval_s: float
    lifetime_s: float


class DeviceToken(NamedTuple):
    """`workspace`: in which the token acts; `lifetime_s`: None for one that does not expire."""

    token: str
    scope: str
    workspace: str
    lifetime_s: float | None


def begin(api: ApiConnection, name: str, scope: str) -> DeviceCodes:
    """Asks the hub for codes. `name`: which program asks, and where. Raises HubUnreachable and HubRefused."""
    answer = api.call("POST", "/api/v1/device-login/", {"name": name[:100], "scope": scope})
    return DeviceCodes(
        str(answer["device_code"]),
        str(answer["user_code"]),
        str(answer["verification_uri"]),
        str(answer["verification_uri_complete"]),
        float(answer["interval"]),
        float(answer["expires_in"]),
    )


def await_token(
    api: ApiConnection, codes: DeviceCodes, sleep: Callable[[float], object] = time.sleep
) -> DeviceToken:
    """Returns the token as soon as a person has allowed it. Raises TrainHubError if nobody does, and
    HubRefused for any other answer."""
    interval_s, waited_s = codes.interval_s, 0.0
    while waited_s < codes.lifetime_s:
        sleep(interval_s)
        waited_s += interval_s
        try:
            answer = api.call("POST", "/api/v1/device-login/token/", {"device_code": codes.device_code})
        except HubUnreachable:
            # RFC 8628, 3.5: it is asked less often, as it may be overloaded.
            interval_s = min(2 * interval_s, LONGEST_INTERVAL_S)
            continue
        except HubRefused as error:
            interval_s += interval_s if error.status in OVERLOADED else _further_pause(error)
            continue
        return DeviceToken(
            str(answer["access_token"]),
            str(answer["scope"]),
            str(answer["workspace"]),
            answer.get("expires_in"),
        )
    raise TrainHubError(_ENDINGS["expired_token"])


def _further_pause(error: HubRefused) -> float:
    """Returns by how much longer to wait from now on. Raises TrainHubError if waiting has no use."""
    code = str(error.body.get("error", ""))
    if code == "authorization_pending":
        return 0
    if code == "slow_down":
        return SLOWER_S
    if code in _ENDINGS:
        raise TrainHubError(_ENDINGS[code]) from error
    raise error
