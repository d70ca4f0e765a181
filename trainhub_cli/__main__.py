"""The entrance of the command line: `trainhub`, or `python -m trainhub_cli`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from trainhub_cli import exit_codes
from trainhub_cli.command_table import COMPLETION_VARIABLE, PROGRAM
from trainhub_cli.main import ReaderGone, cli
from trainhub_cli.printing import print_error
from trainhub_sdk.errors import TrainHubError


def main() -> None:
    # Python has no stream for a descriptor that is closed, as by `>&-`.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    code = run_command(None)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _end_quietly()
    sys.exit(code)


def run_command(arguments: Sequence[str] | None) -> int:
    """Runs the command line, by default that of the process. Returns its exit code. An error that nobody
    expects is not caught."""
    try:
        result = cli.main(arguments, PROGRAM, COMPLETION_VARIABLE, standalone_mode=False)
        return result if isinstance(result, int) else exit_codes.COMPLETED
    except TrainHubError as error:
        print_error(error)
        return exit_codes.of_error(error)
    except click.ClickException as error:
        error.show()
        return exit_codes.REFUSED
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        return exit_codes.INTERRUPTED
    except ReaderGone:
        return _end_quietly()


def _end_quietly() -> int:
    # Python would say once more at its end that nobody reads.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exit_codes.BROKEN_PIPE


if __name__ == "__main__":
    main()
