"""The command `trainhub` itself."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from trainhub_cli.command_table import ALIASES, COMMANDS, PROGRAM, all_entries
from trainhub_cli.options import profile_option
from trainhub_sdk import __version__

# So long `--version` waits for a hub.
VERSION_TIMEOUT_S = 3.0


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


class CommandGroup(click.Group):
    """Imports the module of a command when that is called, and not for help or completion."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # click would end with 1, which says of `submit --watch` that the run has failed.
            raise ReaderGone from None

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **extra)
        except BrokenPipeError:  # of --help
            raise ReaderGone from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(all_entries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        name = ALIASES.get(cmd_name, cmd_name)
        entry = all_entries().get(name)
        if entry is None:
            return None
        command: click.Command = getattr(
            import_module(f"trainhub_cli.commands.{entry.module}"), entry.attribute
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in {*all_entries(), *ALIASES}:
            from difflib import get_close_matches

            near = get_close_matches(args[0], [*all_entries(), *ALIASES], n=1, cutoff=0.75)
            hint = f"is {near[0]} meant?" if near else f"see {PROGRAM} --help"
            raise click.UsageError(f"There is no command {args[0]}: {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in commands.items()], col_max=13)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=entry.help)
            for name, entry in all_entries().items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


def _print_versions(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Prints the version of this program, and that of the hub if one is chosen and answers."""
    if not value:
        return
    click.echo(f"{PROGRAM} {__version__}")
    _print_hub_version()
    ctx.exit()


def _print_hub_version() -> None:
    """Prints nothing if no hub is chosen. Raises NoProfile if its address, or its authority, is wrong."""
    from trainhub_cli.hub_access import chosen_profile
    from trainhub_cli.printing import clean
    from trainhub_sdk.api_connection import ApiConnection
    from trainhub_sdk.errors import HubRefused, HubUnreachable, NoProfile

    try:
        profile = chosen_profile()
    except NoProfile:
        return  # nobody has signed in yet
    api = ApiConnection(profile.url, profile.token, profile.ca, retry_s=0)
    try:
        # A refusal has the version, too.
        with suppress(HubRefused):
            api.open("GET", "/api/v1/me/", timeout=VERSION_TIMEOUT_S).close()
    except HubUnreachable as error:
        click.echo(clean(error), err=True)
        return
    click.echo(clean(f"hub {api.hub_version.text or 'of an unknown version'} at {api.url}"))


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"RUN is a number, an id or its beginning, or @last. Help of a command: {PROGRAM} COMMAND --help",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    callback=_print_versions,
    help="Show the versions of this program and of the hub.",
)
@profile_option
def cli() -> None:
    """Submit training runs to a TrainHub, follow them, and use what they leave."""
