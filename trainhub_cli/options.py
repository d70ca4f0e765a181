"""Options and arguments that many commands have."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_PROFILE = "trainhub_cli.profile"


def _remember_profile(ctx: click.Context, _: click.Parameter, value: str) -> None:
    # Also in front of the command: `trainhub --profile lab ls`. `meta` is shared by all contexts.
    if value:
        ctx.meta[_PROFILE] = value


def _complete_profile(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from trainhub_sdk.errors import TrainHubError
    from trainhub_sdk.profiles import load_profiles

    try:
        return [name for name in load_profiles() if name.startswith(incomplete)]
    except TrainHubError:
        return []


def profile_name() -> str:
    """Returns the profile that the command line names, "" if it names none."""
    ctx = click.get_current_context(silent=True)
    return str(ctx.meta.get(_PROFILE, "")) if ctx else ""


def profile_option(function: F) -> F:
    return click.option(
        "--profile",
        metavar="NAME",
        expose_value=False,
        is_eager=True,
        callback=_remember_profile,
        shell_complete=_complete_profile,
        help="The hub to use, as `trainhub profile ls` lists them.",
    )(function)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")(function)


def watch_option(function: F) -> F:
    return click.option("--watch", "-w", is_flag=True, help="Refresh it on the screen until Ctrl-C.")(
        function
    )
