"""retention show, preview, set, cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from trainhub_cli.formats import NONE, format_size, format_time
from trainhub_cli.hub_access import open_api
from trainhub_cli.options import json_option, profile_option
from trainhub_cli.printing import clean, print_json, print_note, print_text
from trainhub_cli.tables import Column, name, number, print_table

KINDS = ("logs", "outputs", "metrics", "telemetry")
PATH = "/api/v1/retention/"


class _Choice(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A number of days, keep, or hub; becomes the fields of a rule."""

    name = "rule"

    def convert(self, value: Any, param: Any, ctx: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        if value == "keep":
            return {"days": None}
        if value == "hub":
            return {"from_hub": True}
        if not str(value).isdecimal():
            self.fail(f"{value} is no rule: write a number of days, keep, or hub", param, ctx)
        return {"days": int(value)}


def _rule_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--only-unsuccessful", is_flag=True, help="Remove these only of runs that failed or were canceled."
    )(command)
    for kind in reversed(KINDS):
        command = click.option(
            f"--{kind}", metavar="DAYS|keep|hub", type=_Choice(), help=f"When {kind} are removed."
        )(command)
    return command


@click.group("retention")
def retention() -> None:
    """Show and set when data of old runs is removed."""


@retention.command("show")
@json_option
@profile_option
def show_rules(as_json: bool) -> None:
    """Show the rules of the workspace, and stricter ones that wait."""
    _print_rules(open_api().get(PATH)["rules"], as_json)


@retention.command("preview")
@_rule_options
@json_option
@profile_option
def preview_rules(*, only_unsuccessful: bool, as_json: bool, **chosen: Any) -> None:
    """Show what rules would remove now. Nothing is changed."""
    answer = open_api().call("POST", f"{PATH}preview/", {"rules": _rules(chosen, only_unsuccessful)})
    if as_json:
        print_json(answer["kinds"])
        return
    _print_preview(answer)


@retention.command("set")
@_rule_options
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@profile_option
def set_rules(*, only_unsuccessful: bool, yes: bool, as_json: bool, **chosen: Any) -> None:
    """Set rules, after a preview of what they remove and a question. Kinds that are not named stay."""
    api, rules = open_api(), _rules(chosen, only_unsuccessful)
    preview = api.call("POST", f"{PATH}preview/", {"rules": rules})
    if not as_json:
        _print_preview(preview)
    if not yes:
        click.confirm("Set these rules?", abort=True, err=True)
    body = {"rules": rules, "confirmation": preview["confirmation"]}
    rules_now = api.call("PUT", PATH, body)["rules"]
    _print_rules(rules_now, as_json)
    if any(rule["waiting"] for rule in rules_now):
        print_note("Until a stricter rule holds, `trainhub retention cancel` takes it back.")


@retention.command("cancel")
@json_option
@profile_option
def cancel_rules(as_json: bool) -> None:
    """Cancel stricter rules that wait: those in force stay."""
    _print_rules(open_api().call("POST", f"{PATH}cancel/")["rules"], as_json)


def _rules(chosen: dict[str, Any], only_unsuccessful: bool) -> list[dict[str, Any]]:
    rules = [
        {"kind": kind, "only_unsuccessful": only_unsuccessful and bool(choice.get("days")), **choice}
        for kind, choice in chosen.items()
        if choice is not None
    ]
    if not rules:
        raise click.UsageError(f"Name at least one rule: {', '.join(f'--{kind}' for kind in KINDS)}.")
    return rules


def _print_rules(rules: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rules)
        return
    rows = [
        [
            rule["kind"],
            rule["in_force"]["words"],
            rule["waiting"]["words"] if rule["waiting"] else NONE,
            format_time(rule["begins_at"]) if rule["begins_at"] else NONE,
        ]
        for rule in rules
    ]
    print_table([Column("DATA"), name("NOW"), name("THEN"), Column("FROM")], rows, "There are no rules.")


def _print_preview(answer: dict[str, Any]) -> None:
    rows = [
        [
            kind["kind"],
            str(kind["count"]),
            format_size(kind["size_bytes"]),
            f"{kind['oldest'][:10]} to {kind['newest'][:10]}" if kind["count"] else NONE,
            str(kind["keep_count"]),
        ]
        for kind in answer["kinds"]
    ]
    columns = [Column("DATA"), number("RUNS"), number("AT MOST"), Column("ENDED", rank=1), number("KEPT")]
    print_table(columns, rows, "These rules remove nothing.")
    for kind in answer["kinds"]:
        for reason in kind["reasons"]:
            print_text(
                clean(f"  {kind['kind']} of {reason['count']} runs are kept because {reason['words']}")
            )
    if answer["begins_at"]:
        print_note(f"Set now, stricter rules hold from {format_time(answer['begins_at'])} on.")
