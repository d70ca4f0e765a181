"""The versions of hub and package: which is older, and what to do."""

from __future__ import annotations

import pytest

import trainhub
import trainhub_sdk
from tests.sdk.scripted_hub import Reply, ScriptedHub, problem
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.connection.versions import HubVersion, parse_header, version_note
from trainhub_sdk.errors import HubRefused

URL = "https://hub.example"


def note(hub: HubVersion, own: str) -> str:
    return version_note(hub, URL, "", own)


@pytest.mark.parametrize(
    ("hub", "own"),
    [("0.3.0", "0.3.9"), ("0.3.9", "0.3.0"), ("0.4.0", "0.3.0"), ("1.0.0", "0.3.0"), ("", "9.0")],
)
def test_versions_that_fit(hub: str, own: str) -> None:
    assert note(HubVersion(hub, "0.3"), own) == ""


def test_a_hub_that_is_older_is_named_with_the_line_that_installs_its_version() -> None:
    sentence = version_note(HubVersion("0.9.1", "0.1"), URL, "/etc/ca.pem", "0.10.0")
    assert "The hub has version 0.9.1, which is older than that of this program, 0.10.0" in sentence
    line = "pip install --no-index --find-links https://hub.example/sdk/ --cert /etc/ca.pem trainhub==0.9.1"
    assert sentence.endswith(line)


def test_a_program_that_the_hub_no_longer_supports_is_named_with_the_line_that_upgrades_it() -> None:
    sentence = note(HubVersion("2.0.0", "1.4"), "1.3.9")
    assert "This program has version 1.3.9, and the hub supports 1.4 and newer." in sentence
    assert "pip install --upgrade --no-index --find-links https://hub.example/sdk/ trainhub" in sentence


@pytest.mark.parametrize(
    ("header", "version"),
    [
        ("0.3.0; oldest-sdk=0.1", HubVersion("0.3.0", "0.1")),
        ("0.3.0", HubVersion("0.3.0", "")),
        ("0.3.0;later=1; oldest-sdk=0.2", HubVersion("0.3.0", "0.2")),
    ],
)
def test_the_header_may_get_more_parameters(header: str, version: HubVersion) -> None:
    assert parse_header(header) == version


@pytest.mark.parametrize("status", [400, 404, 405])
def test_an_error_of_an_older_hub_says_so(status: int) -> None:
    answer = problem(status, detail="This does not exist")
    hub = ScriptedHub(Reply(status, answer.body, {"X-TrainHub-Version": "0.0.9; oldest-sdk=0.0"}))
    with hub.serving() as url:
        api = ApiConnection(url)
        with pytest.raises(HubRefused, match="This does not exist") as caught:
            api.get("/api/v1/of-a-newer-hub/")
    assert "The hub has version 0.0.9, which is older" in str(caught.value)
    assert (api.hub_version.text, caught.value.version_note in str(caught.value)) == ("0.0.9", True)


def test_an_error_of_a_hub_that_fits_says_nothing_of_versions() -> None:
    hub = ScriptedHub(
        Reply(404, b"{}", {"X-TrainHub-Version": f"{trainhub_sdk.__version__}; oldest-sdk=0.1"})
    )
    with hub.serving() as url, pytest.raises(HubRefused) as caught:
        ApiConnection(url).get("/api/v1/runs/9/")
    assert "version" not in str(caught.value)


def test_a_hub_serves_a_package_of_its_own_version_and_supports_it() -> None:
    assert trainhub_sdk.__version__ == trainhub.__version__
    hub = HubVersion(trainhub.__version__, trainhub.OLDEST_SDK_VERSION)
    assert note(hub, trainhub_sdk.__version__) == ""
