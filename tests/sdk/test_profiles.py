"""Which hub is used, and that a token goes to no other."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from trainhub_sdk.errors import NoProfile
from trainhub_sdk.profiles import (
    Profile,
    choose_profile,
    config_file,
    current_name,
    load_profiles,
    remove_profile,
    save_profile,
    use_profile,
)

HOME_HUB = Profile("default", "https://home", "home-token", "", "default")
LAB = Profile("lab", "https://lab", "lab-token", "/lab.pem", "team")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "trainhub" / "config.ini"
    save_profile(LAB, file)
    save_profile(HOME_HUB, file)
    return file


def test_the_last_saved_is_in_use_until_another_is_chosen(file: Path) -> None:
    assert (current_name(file), list(load_profiles(file))) == ("default", ["lab", "default"])
    use_profile("lab", file)
    assert choose_profile("", {}, file) == LAB
    remove_profile("lab", file)
    assert choose_profile("", {}, file) == HOME_HUB


def test_the_file_is_for_its_owner_only(file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_names_come_before_variables_and_variables_before_the_current_one(file: Path) -> None:
    environ = {"TRAINHUB_URL": "https://ci", "TRAINHUB_TOKEN": "ci-token"}
    assert choose_profile("lab", environ, file) == LAB
    assert choose_profile("", {"TRAINHUB_PROFILE": "lab"}, file) == LAB
    assert choose_profile("", environ, file) == Profile("", "https://ci", "ci-token")


def test_another_address_alone_never_gets_a_token_of_a_profile(file: Path) -> None:
    chosen = choose_profile("", {"TRAINHUB_URL": "https://elsewhere/"}, file)
    assert (chosen.url, chosen.token) == ("https://elsewhere", "")


def test_a_token_alone_is_for_the_hub_of_the_profile(file: Path) -> None:
    chosen = choose_profile("", {"TRAINHUB_TOKEN": "other"}, file)
    assert (chosen.url, chosen.token) == ("https://home", "other")


def test_what_is_missing_says_how_to_sign_in(tmp_path: Path, file: Path) -> None:
    with pytest.raises(NoProfile, match="trainhub login https"):
        choose_profile("", {}, tmp_path / "none")
    with pytest.raises(NoProfile, match=r"no profile x in .*: there are default, lab"):
        choose_profile("x", {}, file)
    file.write_text("url = without a section")
    with pytest.raises(NoProfile, match="Correct it, or remove it"):
        load_profiles(file)


def test_the_place_of_the_file() -> None:
    assert config_file({"XDG_CONFIG_HOME": "/x"}) == Path("/x/trainhub/config.ini")
    assert config_file({"HOME": "/h"}) == Path("/h/.config/trainhub/config.ini")
