"""profile ls, use, rm."""

from __future__ import annotations

import click

from trainhub_cli.options import json_option
from trainhub_cli.printing import print_json, print_text
from trainhub_cli.tables import Column, name, print_table
from trainhub_sdk.profiles import current_name, load_profiles, remove_profile, use_profile


def _complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [profile for profile in load_profiles() if profile.startswith(incomplete)]


@click.group("profile")
def profiles() -> None:
    """List, choose and remove profiles: the hubs that you have signed in to."""


@profiles.command("ls")
@json_option
def list_profiles(as_json: bool) -> None:
    """List the profiles; the one in use has a star."""
    current = current_name()
    rows = list(load_profiles().values())
    if as_json:
        print_json(
            {
                "name": row.name,
                "url": row.url,
                "workspace": row.workspace,
                "ca": row.ca,
                "current": row.name == current,
            }
            for row in rows
        )
        return
    print_table(
        [Column(""), Column("PROFILE"), name("HUB"), name("WORKSPACE", 1)],
        [["*" if row.name == current else "", row.name, row.url, row.workspace] for row in rows],
        "There is no profile yet: trainhub login https://ADDRESS-OF-THE-HUB",
    )


@profiles.command("use")
@click.argument("profile", shell_complete=_complete)
def choose(profile: str) -> None:
    """Use this profile from now on."""
    use_profile(profile)
    print_text(f"Profile {profile} is in use: {load_profiles()[profile].url}")


@profiles.command("rm")
@click.argument("profile", shell_complete=_complete)
def remove(profile: str) -> None:
    """Remove a profile and its token from this machine."""
    remove_profile(profile)
    print_text(f"Profile {profile} is removed.")
