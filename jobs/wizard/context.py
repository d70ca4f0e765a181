"""What the wizard's templates are given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.forms.boundfield import BoundField

from jobs.models import Draft
from jobs.wizard import choices, picture, steps
from jobs.wizard.distribution_form import DistributionForm
from jobs.wizard.environment_form import EnvironmentForm
from jobs.wizard.evaluation import Evaluation, Problem
from jobs.wizard.resources_form import ResourcesForm
from jobs.wizard.source_form import SourceForm, read_source
from jobs.wizard.text_values import split_arguments
from trainhub_launch.frameworks.form import FormCard
from workspaces.access import Principal

Context = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A form field with what stands under it."""

    name: str
    field: BoundField
    problems: tuple[Problem, ...]

    @property
    def is_wrong(self) -> bool:
        return any(problem.level == "error" for problem in self.problems)


@dataclass(frozen=True)
class StepLine:
    """One line of the list at the left."""

    name: str
    title: str
    number: int
    state: str
    is_here: bool


@dataclass(frozen=True)
class Card:
    kind: FormCard
    is_chosen: bool
    places: tuple[Entry, ...]


def step_context(
    draft: Draft, step: str, found: Evaluation, who: Principal, *, tell_all: bool, rank: int
) -> Context:
    """`tell_all`: also say what is merely not filled in yet."""
    context: Context = {
        "draft": draft,
        "step": step,
        "found": found,
        "lines": lines(found, step),
        "back": steps.before(step),
        "picture": None if found.plan is None else picture.draw(found.plan, rank, _mine(found)),
        "missing": _missing(found, step),
    }
    if step == steps.REVIEW:
        return context | _review(found)
    form = found.forms[step]
    told = [problem for problem in found.of(step) if tell_all or not problem.untold]
    entries = {
        name: Entry(name, form[name], tuple(problem for problem in told if problem.field == name))
        for name in form.fields
    }
    context |= {"current": steps.BY_NAME[step], "form": form, "places": entries, "next": steps.after(step)}
    if isinstance(form, SourceForm):
        return context | _source(form, who)
    if isinstance(form, DistributionForm):
        return context | {"cards": _cards(form, entries)}
    if isinstance(form, ResourcesForm):
        return context | _resources(form, who)
    if isinstance(form, EnvironmentForm):
        return context | _environment(form, who)
    return context


def lines(found: Evaluation, here: str) -> list[StepLine]:
    listed = [
        StepLine(step.name, step.title, number, found.state(step.name), step.name == here)
        for number, step in enumerate(steps.STEPS, start=1)
    ]
    return [
        *listed,
        StepLine(steps.REVIEW, "Review and submit", len(listed) + 1, "open", here == steps.REVIEW),
    ]


def _review(found: Evaluation) -> Context:
    titles = {step.name: step.title for step in steps.STEPS}
    spec = found.spec
    return {
        "table": None if found.plan is None else picture.tabulate(found.plan, _mine(found)),
        # The review lists every problem above its picture already.
        "missing": [],
        "listed": [(problem, titles[problem.step]) for problem in found.problems],
        "spec_json": "" if spec is None else json.dumps(spec.to_json(), indent=2, ensure_ascii=False),
        "spec": spec,
        "may_submit": spec is not None and found.plan is not None and not found.errors,
    }


def _missing(found: Evaluation, here: str) -> list[tuple[Problem, str]]:
    """Why there is no picture, where another step is the cause; each with that step's title."""
    elsewhere = [problem for problem in found.errors if problem.step != here and not problem.untold]
    return [(problem, steps.BY_NAME[problem.step].title) for problem in elsewhere]


def _mine(found: Evaluation) -> frozenset[str]:
    return frozenset(found.spec.environment_variables) if found.spec else frozenset()


def _source(form: SourceForm, who: Principal) -> Context:
    facts = choices.source_facts(read_source((form.typed.get("source") or [""])[0]), who)
    return {
        "facts": facts,
        "cards_of_examples": choices.gallery(),
        "runs": choices.last_runs(who.workspace, 5),
        "chosen_runs": (form.typed.get("runs") or ["script"])[0],
        "tokens": {name: tokens(form, name) for name in ("arguments", "command")},
    }


def tokens(form: SourceForm, name: str) -> tuple[str, ...]:
    """The list that the typed text stands for, as far as it can be read."""
    try:
        return split_arguments((form.typed.get(name) or [""])[0])
    except ValueError:
        return ()


def _cards(form: DistributionForm, entries: dict[str, Entry]) -> list[Card]:
    return [
        Card(kind, is_chosen, tuple(entries[field.name] for field in fields))
        for kind, is_chosen, fields in form.cards()
    ]


def _resources(form: ResourcesForm, who: Principal) -> Context:
    found = choices.clusters(who.workspace)
    chosen = (form.typed.get("cluster") or [""])[0]
    return {
        "clusters": found,
        "chosen_cluster": chosen,
        "is_known_cluster": any(item.name == chosen for item in found),
    }


def _environment(form: EnvironmentForm, who: Principal) -> Context:
    found = choices.environment_choices(who.workspace)
    chosen = (form.typed.get("environment") or [""])[0]
    rare = [item for item in found if item.is_rare]
    return {
        "environments": [item for item in found if not item.is_rare],
        "rare_environments": rare,
        "is_rare_environment": any(item.value == chosen for item in rare),
        "chosen_environment": chosen,
        "is_known_environment": any(item.value == chosen for item in found),
        "experiments": choices.experiments(who.workspace),
        "variable_rows": [*form.variable_rows(), ("", "", "value")],
        "tag_rows": [*form.tag_rows(), ("", "")],
    }
