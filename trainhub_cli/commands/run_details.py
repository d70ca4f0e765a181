"""show, events, open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trainhub_cli.browser import has_display, open_in_browser
from trainhub_cli.formats import format_duration, format_number, format_size, format_time, run_duration_s
from trainhub_cli.hub_access import chosen_profile, open_client
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import clean, print_json, print_state, print_text
from trainhub_cli.references import complete_run, run_argument
from trainhub_cli.spec_summary import summarize_spec
from trainhub_cli.tables import Column, name, print_table

if TYPE_CHECKING:
    from trainhub_sdk.run import Run

FILES, METRICS = 10, 15


@click.command("show")
@run_argument
@json_option
@profile_option
def show_run(run: str, as_json: bool) -> None:
    """Show a run: its state, why it failed and what to do, its spec, files and metrics."""
    chosen = open_client().run(run)
    if as_json:
        print_json([chosen.json])
        return
    _print_head(chosen)
    for title, text in summarize_spec(chosen.spec or {}):
        print_text(f"  {title:<12} {clean(text)}")
    metrics = chosen.metrics()
    for key, metric in list(metrics.items())[:METRICS]:
        print_text(
            f"  {'metric':<12} {clean(key)} = {format_number(metric['last'])} (step {metric['last_step']})"
        )
    if len(metrics) > METRICS:
        print_text(f"  {'':<12} and {len(metrics) - METRICS} more: trainhub metrics {chosen.number}")
    files = chosen.files() if chosen.attempt else []
    for file in files[:FILES]:
        print_text(f"  {'file':<12} {clean(file.path)} ({format_size(file.size_bytes)})")
    if len(files) > FILES:
        print_text(f"  {'':<12} and {len(files) - FILES} more: trainhub files ls {chosen.number}")
    for removal in chosen.removed:
        print_text(f"  {'removed':<12} {clean(removal.sentence)}")


@click.command("events")
@run_argument
@json_option
@profile_option
def list_events(run: str, as_json: bool) -> None:
    """List what has happened to a run, the oldest first."""
    events = open_client().run(run).events()
    if as_json:
        print_json(event.json for event in events)
        return
    rows = [
        [
            format_time(event.at),
            str(event.attempt),
            event.to_state,
            event.message or event.reason,
            event.actor,
        ]
        for event in events
    ]
    columns = [Column("TIME"), Column("ATTEMPT", rank=2), Column("STATE"), name("MESSAGE"), name("BY", 1)]
    print_table(columns, rows, "Nothing has happened yet.")


@click.command("open")
@click.argument("run", required=False, default="", metavar="[RUN]", shell_complete=complete_run)
@profile_option
def open_page(run: str) -> None:
    """Open the page of a run, or of the hub, in the browser. Without a display its address is printed."""
    address = open_client().run(run).url if run else f"{chosen_profile().url}/"
    if not has_display() or not open_in_browser(address):
        print_text(address)


def _print_head(run: Run) -> None:
    print_state(clean(f"Run {run.number}: {run.display_name}, {run.state}"), run.state)
    facts = [f"experiment {run.experiment}"]
    if run.cluster:
        facts.append(f"cluster {run.cluster}")
    facts.append(f"by {run.created_by or 'nobody'} at {format_time(run.created_at)}")
    if run.started_at:
        duration_s = run_duration_s(run.started_at, run.finished_at, run.api.now())
        facts.append(f"ran {format_duration(duration_s)}")
    print_text(clean(f"  {', '.join(facts)}"))
    print_text(f"  {run.url}")
    if run.sentence and run.state != "Completed" and not (run.cause and run.cause.line == run.sentence):
        print_text(clean(f"  {run.sentence}"))
    if run.queue:
        print_text(clean(f"  {run.queue.sentence}"))
    if run.cause:
        print_text(clean(f"  The cause: {run.cause.line}"))
        print_text(clean(f"  What to do: {run.cause.remedy}"))
