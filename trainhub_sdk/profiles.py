"""Which hub to use, and with which token: from variables, or from a file that `trainhub login` writes.

The file is an INI file, as Python 3.8 can read one, and readable for its owner only. A section
`profile NAME` has `url`, `token`, and perhaps `ca` (the path of a file with the authority of the hub) and
`workspace`, and `origin`; the section `settings` names the profile in use as `current`."""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from trainhub_sdk.errors import NoProfile

URL, TOKEN, CA, PROFILE = "TRAINHUB_URL", "TRAINHUB_TOKEN", "TRAINHUB_CA_FILE", "TRAINHUB_PROFILE"
DEFAULT = "default"
LOGIN = "login"
_SECTION = "profile "
_NO_PROFILE = "It is not known which hub to use. Sign in: trainhub login https://ADDRESS-OF-THE-HUB"


class Profile(NamedTuple):
    """A hub as one person uses it. `ca`: a file with the only authority to trust; "" = those of this
    machine. `workspace`: the short name of that in which the token acts, "" if not known. `origin`: LOGIN for
    a token that was made for this profile, and that nothing else uses; "" for one that was typed."""

    name: str
    url: str
    token: str = ""
    ca: str = ""
    workspace: str = ""
    origin: str = ""


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    folder = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME") or Path.home()) / ".config")
    return Path(folder) / "trainhub" / "config.ini"


def load_profiles(file: Path | None = None) -> dict[str, Profile]:
    """Returns all profiles of the file by name, in its order. Raises NoProfile for a file that cannot be
    read."""
    parser = _read(file or config_file())
    return {
        name[len(_SECTION) :]: Profile(name[len(_SECTION) :], **_settings(parser[name]))
        for name in parser.sections()
        if name.startswith(_SECTION)
    }


def current_name(file: Path | None = None) -> str:
    """Returns the name of the profile that is used if none is named, "" if there is none."""
    parser = _read(file or config_file())
    names = [name[len(_SECTION) :] for name in parser.sections() if name.startswith(_SECTION)]
    name = parser.get("settings", "current", fallback="")
    return name if name in names else (names[0] if names else "")


def choose_profile(
    name: str = "", environ: Mapping[str, str] = os.environ, file: Path | None = None
) -> Profile:
    """Returns the profile to use: that of this name, else that of TRAINHUB_PROFILE, else the current one.
    Without a name, TRAINHUB_URL, TRAINHUB_TOKEN and TRAINHUB_CA_FILE replace what the profile says: another
    URL alone never gets the token of the profile. Raises NoProfile."""
    file = file or config_file(environ)
    selected = name or environ.get(PROFILE, "")
    profiles = load_profiles(file)
    if selected and selected not in profiles:
        others = f"there are {', '.join(sorted(profiles))}" if profiles else "there is none yet"
        raise NoProfile(f"There is no profile {selected} in {file}: {others}. Make one: trainhub login")
    profile = profiles.get(selected or current_name(file))
    url, token, ca = (environ.get(key, "").strip() for key in (URL, TOKEN, CA))
    if name or not (url or token or ca):
        if profile is None:
            raise NoProfile(_NO_PROFILE)
        return profile
    if profile is None or (url and url.rstrip("/") != profile.url):
        profile = Profile("", url.rstrip("/"))
    if not profile.url:
        raise NoProfile(_NO_PROFILE)
    return profile._replace(token=token or profile.token, ca=ca or profile.ca)


def save_profile(profile: Profile, file: Path | None = None) -> Path:
    """Stores the profile, in place of one of the same name, and makes it the current one. Returns the
    file."""
    file = file or config_file()
    parser = _read(file)
    parser[_SECTION + profile.name] = {
        key: value for key, value in profile._asdict().items() if key != "name" and value
    }
    _select(parser, profile.name)
    _write(parser, file)
    return file


def use_profile(name: str, file: Path | None = None) -> None:
    """Makes a profile the current one. Raises NoProfile if there is no such."""
    file = file or config_file()
    parser = _existing(file, name)
    _select(parser, name)
    _write(parser, file)


def remove_profile(name: str, file: Path | None = None) -> None:
    """Forgets a profile with its token. Raises NoProfile if there is no such."""
    file = file or config_file()
    parser = _existing(file, name)
    parser.remove_section(_SECTION + name)
    _write(parser, file)


def _existing(file: Path, name: str) -> configparser.ConfigParser:
    parser = _read(file)
    if not parser.has_section(_SECTION + name):
        raise NoProfile(f"There is no profile {name} in {file}. See them all: trainhub profile ls")
    return parser


def _select(parser: configparser.ConfigParser, name: str) -> None:
    if not parser.has_section("settings"):
        parser.add_section("settings")
    parser.set("settings", "current", name)


def _settings(section: Mapping[str, str]) -> dict[str, str]:
    return {key: section.get(key, "").strip() for key in Profile._fields[1:]}


def _read(file: Path) -> configparser.ConfigParser:
    # Tokens may hold any character.
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with file.open(encoding="utf-8") as stream:
            parser.read_file(stream)
    except FileNotFoundError:
        pass
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        raise NoProfile(
            f"{file} cannot be read: {error}. Correct it, or remove it and sign in again."
        ) from error
    return parser


def _write(parser: configparser.ConfigParser, file: Path) -> None:
    """Never half of it, and readable for its owner only from the first byte on."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(str(aside), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        parser.write(stream)
    os.replace(str(aside), str(file))
