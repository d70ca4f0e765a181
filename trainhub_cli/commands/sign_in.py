"""login, logout, whoami."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from trainhub_cli.browser import has_display, open_in_browser
from trainhub_cli.command_table import PROGRAM
from trainhub_cli.hub_access import chosen_profile, open_api
from trainhub_cli.options import json_option, profile_name, profile_option
from trainhub_cli.printing import clean, print_json, print_note, print_text
from trainhub_sdk import __version__, device_login
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import HubRefused, HubUnreachable, NoProfile
from trainhub_sdk.profiles import (
    CA,
    DEFAULT,
    LOGIN,
    PROFILE,
    URL,
    Profile,
    current_name,
    load_profiles,
    remove_profile,
    save_profile,
)

SCOPES = ("read", "log", "register", "submit", "write")
UNAUTHORIZED = 401
LOGOUT_RETRY_S = 3.0
_NO_URL = "Name the hub: trainhub login https://ADDRESS-OF-THE-HUB"


@click.command("login")
@click.argument("url", required=False, default="", metavar="[URL]")
@click.option(
    "--ca", type=click.Path(exists=True, dir_okay=False), help="The authority of a hub that has its own."
)
@click.option(
    "--scope", type=click.Choice(SCOPES), default="submit", show_default=True, help="What it may do."
)
@click.option(
    "--token-stdin", is_flag=True, help="Read a token of the Settings page instead; it is not shown."
)
@click.option("--no-browser", is_flag=True, help="Only print the address of the page.")
@profile_option
def sign_in(url: str, ca: str | None, scope: str, token_stdin: bool, no_browser: bool) -> None:
    """Sign in to the hub at URL, by default that of the profile.

    The hub's page asks whether this program may have a token. It is stored in ~/.config/trainhub/config.ini,
    readable for you only."""
    name = profile_name() or os.environ.get(PROFILE, "")
    earlier = load_profiles().get(name or current_name())
    url = (url or os.environ.get(URL, "") or (earlier.url if earlier else "")).rstrip("/")
    if not url:
        raise NoProfile(_NO_URL)
    url = url if "://" in url else f"https://{url}"
    ca_path = str(Path(ca or os.environ.get(CA, "")).resolve()) if ca or os.environ.get(CA) else ""
    if not ca_path and earlier and earlier.url == url:
        ca_path = earlier.ca
    token = _read_token() if token_stdin else _fetch_token(ApiConnection(url, "", ca_path), scope, no_browser)
    me = ApiConnection(url, token, ca_path).get("/api/v1/me/")
    origin = "" if token_stdin else LOGIN
    profile = Profile(name or _new_name(url), url, token, ca_path, me["workspace"], origin)
    file = save_profile(profile)
    print_text(
        clean(f"Signed in to {url} as {me['user']} in workspace {me['workspace']}, scope {me['scope']}.")
    )
    print_note(f"Saved as profile {profile.name} in {file}.")


@click.command("logout")
@profile_option
def sign_out() -> None:
    """Forget the profile on this machine, and revoke the token that login has made for it."""
    name = profile_name() or os.environ.get(PROFILE, "") or current_name()
    if not name:
        raise NoProfile("There is no profile, so there is nothing to forget.")
    profile = load_profiles().get(name)
    # First, as a token that is forgotten here can be revoked on the page only.
    problem = _revoke(profile) if profile else ""
    remove_profile(name)
    if profile and not problem:
        print_text(f"Profile {name} is forgotten here, and its token is revoked.")
    elif profile:
        print_text(clean(f"Profile {name} and its token are forgotten here. {problem}"))
        print_text(f"To revoke the token as well: {profile.url}/settings/")


@click.command("whoami")
@json_option
@profile_option
def show_identity(as_json: bool) -> None:
    """Show who you are, in which workspace, and what the token may do."""
    profile = chosen_profile()
    api = open_api()
    me = api.get("/api/v1/me/")
    if as_json:
        versions = {"hub_version": api.hub_version.text, "version": __version__}
        print_json([{**me, "url": profile.url, "profile": profile.name, **versions}])
        return
    name = f"{me['user']} ({me['display_name']})" if me.get("display_name") else me["user"]
    print_text(clean(f"{name}, {me['role']} in workspace {me['workspace']}, scope {me['scope']}"))
    print_text(f"{profile.url}" + (f" (profile {profile.name})" if profile.name else ""))
    print_text(clean(f"hub {api.hub_version.text or 'of an unknown version'}, {PROGRAM} {__version__}"))


def _revoke(profile: Profile) -> str:
    """Revokes the token of the profile, and returns why that was not done; "" if it was."""
    if profile.origin != LOGIN:
        return "Another program may use it, as it was not made by trainhub login."
    try:
        api = ApiConnection(profile.url, profile.token, profile.ca, retry_s=LOGOUT_RETRY_S)
        api.call("DELETE", "/api/v1/me/token/")
    except HubRefused as error:
        # 401: it has expired, or is revoked already.
        return "" if error.status == UNAUTHORIZED else str(error)
    except HubUnreachable as error:
        return str(error)
    return ""


def _fetch_token(api: ApiConnection, scope: str, no_browser: bool) -> str:
    """Returns a token that a person has allowed on a page of the hub. Raises TrainHubError if nobody does."""
    codes = device_login.begin(api, f"trainhub on {os.uname().nodename}", scope)
    print_note(clean(f"Open {codes.page_with_code}"))
    print_note(clean(f"and allow the program with the code {codes.user_code}."))
    if not no_browser and has_display():
        open_in_browser(codes.page_with_code)
    print_note(f"Waiting for {codes.lifetime_s / 60:.0f} minutes; Ctrl-C ends it.")
    return device_login.await_token(api, codes).token


def _read_token() -> str:
    """Returns a token from standard input, or typed without echo. Raises UsageError if there is none."""
    if sys.stdin.isatty():
        token = str(click.prompt("Token", hide_input=True, err=True))
    else:
        token = sys.stdin.readline()
    token = token.strip()
    if not token.isprintable() or not token.isascii() or " " in token or not token:
        raise click.UsageError("--token-stdin: there is no token in the first line of standard input.")
    return token


def _new_name(url: str) -> str:
    """Returns the name of a profile for this hub: that of an earlier one, `default`, or the host."""
    profiles = load_profiles()
    same = [profile.name for profile in profiles.values() if profile.url == url]
    if same:
        return same[0]
    host = urlsplit(url).hostname or DEFAULT
    return DEFAULT if DEFAULT not in profiles else host
