"""RUN on the command line: its completion by the shell, and the argument itself."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import click

from trainhub_sdk.profiles import Profile

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])
LAST = "@last"
FRESH_S = 5.0
# The terminal waits meanwhile.
TIMEOUT_S = 2.0
COUNT = 50


def run_argument(function: F) -> F:
    return click.argument("run", metavar="RUN", shell_complete=complete_run)(function)


def runs_argument(function: F) -> F:
    return click.argument("runs", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_run)(
        function
    )


def complete_run(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Returns the newest runs. While somebody types, an error is no help: then there are none."""
    from click.shell_completion import CompletionItem

    from trainhub_sdk.errors import TrainHubError

    try:
        rows = _newest_runs()
    except (TrainHubError, OSError, ValueError, KeyError, TypeError):
        return []
    items = [CompletionItem(row["number"], help=_description(row)) for row in rows]
    return [
        item
        for item in [*items, CompletionItem(LAST, help="your newest")]
        if item.value.startswith(incomplete)
    ]


def _description(row: dict[str, str]) -> str:
    """Returns what shells show beside the number. The script for fish ends it at a comma."""
    from trainhub_cli.printing import clean

    return " ".join(clean(f"{row['state']} {row['name']}").replace(",", " ").split())


def cache_file(profile: Profile) -> Path:
    from hashlib import sha256

    folder = os.environ.get("XDG_CACHE_HOME") or str(Path(os.environ.get("HOME") or Path.home()) / ".cache")
    key = sha256(f"{profile.url} {profile.token}".encode()).hexdigest()[:16]
    return Path(folder) / "trainhub" / f"runs-{key}.json"


def _newest_runs() -> list[dict[str, str]]:
    """Returns the newest runs, as of 5 s ago at most: a shell asks at each key."""
    from trainhub_cli.hub_access import chosen_profile
    from trainhub_sdk.api_connection import ApiConnection

    profile = chosen_profile()
    file = cache_file(profile)
    if file.exists() and abs(time.time() - file.stat().st_mtime) < FRESH_S:
        return list(json.loads(file.read_text(encoding="utf-8")))
    api = ApiConnection(profile.url, profile.token, profile.ca, retry_s=0)
    answer = api.open("GET", "/api/v1/runs/", query={"page_size": COUNT}, timeout=TIMEOUT_S).json()
    rows = [
        {"number": str(row["number"]), "state": row["state"], "name": row["display_name"]}
        for row in answer["results"]
    ]
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(str(aside), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(rows, stream)
    os.replace(str(aside), str(file))
    return rows
