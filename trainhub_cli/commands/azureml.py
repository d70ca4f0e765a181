"""azureml run, azureml check: what `python -m trainhub_azureml` does."""

from __future__ import annotations

import click

# All that follows belongs to the script, also what looks like an option of this program, and a `--`.
_PASSED_ON = {"ignore_unknown_options": True, "help_option_names": [], "allow_interspersed_args": False}


@click.group("azureml")
def azureml() -> None:
    """Run or check scripts of the Azure ML SDK v1."""


@azureml.command("run", context_settings=_PASSED_ON)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(script: str, arguments: tuple[str, ...]) -> int:
    """Run a script unchanged: what it submits becomes runs of the hub."""
    from trainhub_azureml.__main__ import main

    return main(["run", script, *arguments])


@azureml.command("check", context_settings=_PASSED_ON)
@click.argument("arguments", metavar="PATH... [--json]", nargs=-1, type=click.UNPROCESSED)
def check(arguments: tuple[str, ...]) -> int:
    """Say what of scripts and notebooks works, without running them."""
    from trainhub_azureml.__main__ import main

    return main(["check", *arguments])
