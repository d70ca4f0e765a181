"""The lines that people copy, by the address of the hub."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.people import client_of
from trainhub import certificates
from trainhub.sdk_downloads import wheels
from trainhub.sdk_downloads.install_lines import install_lines
from workspaces.models import User

SUBMIT = "trainhub submit -- python train.py"


def commands() -> list[str]:
    return [line.command for line in install_lines()]


@pytest.mark.parametrize("hub", ["http://127.0.0.1:8000", "https://hub.example"])
def test_a_hub_on_this_machine_or_with_a_public_certificate_needs_no_authority(
    settings: Settings, hub: str
) -> None:
    settings.API_URL, settings.HUB_CA = hub, None
    assert commands() == [
        f"pip install --no-index --find-links {hub}/sdk/ trainhub",
        f"trainhub login {hub}",
        SUBMIT,
    ]


def test_a_hub_without_tls_is_named_to_pip_as_trusted(settings: Settings) -> None:
    settings.API_URL, settings.HUB_CA = "http://hub.example:8000", None
    assert "--trusted-host hub.example:8000 trainhub" in commands()[0]


def test_an_authority_of_a_hub_with_a_name_needs_no_option_of_later_versions_of_pip(
    settings: Settings, tmp_path: Path
) -> None:
    certificates.ensure(tmp_path, ["localhost"])
    settings.API_URL, settings.HUB_CA = "https://hub.lab:8000", tmp_path / "ca.pem"
    rest = "--find-links https://hub.lab:8000/sdk/ --cert trainhub-ca.pem trainhub"
    assert commands()[1] == f"pip install --no-index {rest}"


def test_an_address_of_ipv6_is_quoted_for_the_shell(settings: Settings) -> None:
    settings.API_URL, settings.HUB_CA = "https://[fd00::1]:8000", None
    assert commands()[1] == "trainhub login 'https://[fd00::1]:8000'"


def test_a_hub_with_its_own_authority_gives_it_first_with_the_hash_of_the_file(
    settings: Settings, tmp_path: Path
) -> None:
    certificates.ensure(tmp_path, ["localhost"])
    settings.API_URL, settings.HUB_CA = "https://10.0.0.1:8000", tmp_path / "ca.pem"
    fetch, install, login, submit = commands()
    assert "https://10.0.0.1:8000/sdk/ca.pem" in fetch
    assert hashlib.sha256(settings.HUB_CA.read_bytes()).hexdigest() in fetch
    rest = "--no-index --find-links https://10.0.0.1:8000/sdk/ --cert trainhub-ca.pem trainhub"
    assert install == (f"pip install --use-deprecated legacy-certs {rest} 2>/dev/null || pip install {rest}")
    assert login == "trainhub login https://10.0.0.1:8000 --ca trainhub-ca.pem"
    assert submit == SUBMIT


@pytest.mark.django_db
def test_the_settings_page_shows_them_to_everybody(
    viewer: User, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_URL = "https://hub.example"
    monkeypatch.setattr(wheels, "REQUIREMENT_WHEELS", tmp_path)
    page = client_of(viewer).get("/settings/").content.decode()
    assert "trainhub login https://hub.example" in page
    assert "This hub lacks click, colorama" in page
