"""slurm token set, show, remove."""

from __future__ import annotations

import sys
from typing import Any, Callable, TypeVar
from urllib.parse import quote

import click

from trainhub_cli.formats import format_time
from trainhub_cli.hub_access import open_api
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import clean, print_json, print_text
from trainhub_sdk.errors import HubRefused, TrainHubError

F = TypeVar("F", bound=Callable[..., Any])
NOT_FOUND = 404
# Longer than any token; what is not one must not fill the memory.
MAX_INPUT = 64 * 1024
HOW = "scontrol token lifespan=604800"


def _observer_option(function: F) -> F:
    return click.option(
        "--observer",
        "is_observers",
        is_flag=True,
        help="The token with which the hub itself looks at this Slurm; for operators.",
    )(function)


@click.group("slurm")
def slurm() -> None:
    """Clusters that are partitions of a Slurm."""


@slurm.group("token")
def tokens() -> None:
    """Your tokens for slurmrestd, with which the hub submits and cancels your jobs."""


@tokens.command("set")
@click.argument("cluster")
@_observer_option
@profile_option
def set_token(cluster: str, is_observers: bool) -> None:
    """Enter or renew your token for CLUSTER, read from standard input.

    On a login node: scontrol token lifespan=604800 | trainhub slurm token set CLUSTER. The profile needs the
    scope write: trainhub login --scope write."""
    answer = open_api().call("PUT", _path(cluster, is_observers), {"token": _read_slurm_token()})
    print_text(
        clean(f"{cluster} has a token of {answer['account']} until {format_time(answer['expires_at'])}.")
    )


@tokens.command("show")
@click.argument("cluster")
@_observer_option
@json_option
@profile_option
def show_token(cluster: str, is_observers: bool, as_json: bool) -> None:
    """Show whose token CLUSTER has, and when it expires; never the token itself."""
    answer = _existing(cluster, is_observers, "GET")
    if as_json:
        print_json([answer])
        return
    print_text(
        clean(
            f"A token of {answer['account']}, valid until {format_time(answer['expires_at'])}, entered "
            f"{format_time(answer['stored_at'])}."
        )
    )


@tokens.command("remove")
@click.argument("cluster")
@_observer_option
@profile_option
def remove_token(cluster: str, is_observers: bool) -> None:
    """Remove your token for CLUSTER from the hub. Your jobs go on, and new runs wait for another token."""
    _existing(cluster, is_observers, "DELETE")
    print_text(
        clean(f"The token for {cluster} is removed from the hub. Slurm itself accepts it until its end.")
    )


def _existing(cluster: str, is_observers: bool, method: str) -> Any:
    """Calls the address of a token. Raises HubRefused, with what to do if there is none."""
    path = _path(cluster, is_observers)
    try:
        return open_api().call(method, path)
    except HubRefused as error:
        # Not that of a cluster that does not exist.
        if error.status != NOT_FOUND or cluster not in _cluster_names():
            raise
    whose = "The hub has no observer's token" if is_observers else "You have no token"
    option = " --observer" if is_observers else ""
    raise TrainHubError(
        f"{whose} for {cluster}. To enter one: {HOW} | trainhub slurm token set {cluster}{option}"
    )


def _cluster_names() -> set[str]:
    return {row["name"] for row in open_api().pages("/api/v1/clusters/")}


def _path(cluster: str, is_observers: bool) -> str:
    kind = "observer-token" if is_observers else "slurm-token"
    return f"/api/v1/clusters/{quote(cluster, safe='')}/{kind}/"


def _read_slurm_token() -> str:
    """Returns what scontrol has printed, from standard input, or typed without echo. Raises UsageError if it
    is empty or no text."""
    if sys.stdin.isatty():
        return str(click.prompt("Token, as scontrol prints it", hide_input=True, err=True))
    raw = sys.stdin.buffer.read(MAX_INPUT + 1)
    text = raw.decode("ascii", errors="replace").strip()
    if not text or len(raw) > MAX_INPUT or not text.isprintable():
        raise click.UsageError(
            f"Standard input has no token. On a login node: {HOW} | trainhub slurm token set CLUSTER"
        )
    return text
