"""The template context of the wizard's pages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.forms.boundfield import BoundField

from datastores.run_inputs import dataset_choices, datastore_names
from jobs.models import Draft
from jobs.scheduling.default_cluster import default_cluster
from jobs.sources.first_use import first_use_of
from jobs.stored_outputs.folders import list_output_stores
from jobs.wizard import choices, cluster_choices, picture, steps
from jobs.wizard.defaults import processes_per_node
from jobs.wizard.distribution_form import DistributionForm
from jobs.wizard.environment_form import EnvironmentForm
from jobs.wizard.evaluation import Evaluation, WizardProblem
from jobs.wizard.forms import StepForm
from jobs.wizard.resources_form import ResourcesForm
from jobs.wizard.source_form import READING_WORDS, SourceForm, read_source, write_data_source
from jobs.wizard.text_values import split_arguments
from trainhub_launch.frameworks.form import FormCard
from trainhub_launch.spec import DataInput
from workspaces.access import Principal
from workspaces.secrets import store as secrets

Context = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A form field with the problems to show below it."""

    name: str
    field: BoundField
    problems: tuple[WizardProblem, ...]

    @property
    def is_wrong(self) -> bool:
        return any(problem.level == "error" for problem in self.problems)


@dataclass(frozen=True)
class StepLine:
    """One line of the list of steps beside the form. `state`: `done`, `errors` or `open`."""

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
    draft: Draft, step: str, evaluation: Evaluation, who: Principal, *, tell_all: bool, rank: int
) -> Context:
    """Returns the template context of a step.

    `tell_all`: also show problems of fields that are merely not filled in yet. `rank`: the process whose
    command the picture shows."""
    context: Context = {
        "draft": draft,
        "step": step,
        "evaluation": evaluation,
        "lines": lines(evaluation, step),
        "back": steps.before(step),
        "picture": None
        if evaluation.plan is None
        else picture.draw(evaluation.plan, rank, _mine(evaluation)),
        "missing": _missing(evaluation, step),
    }
    if step == steps.REVIEW:
        return context | _review(evaluation, who)
    form = evaluation.forms[step]
    problems = [problem for problem in evaluation.of(step) if tell_all or not problem.is_unvisited]
    entries = {
        name: Entry(name, form[name], tuple(problem for problem in problems if problem.field == name))
        for name in form.fields
    }
    context |= {"current": steps.BY_NAME[step], "form": form, "places": entries, "next": steps.after(step)}
    if isinstance(form, SourceForm):
        return context | _source(form, who)
    if isinstance(form, DistributionForm):
        return context | {"cards": _cards(form, entries)}
    if isinstance(form, ResourcesForm):
        return context | _resources(form, evaluation.forms["distribution"], who)
    if isinstance(form, EnvironmentForm):
        return context | _environment(form, who)
    return context


def lines(evaluation: Evaluation, here: str) -> list[StepLine]:
    listed = [
        StepLine(step.name, step.title, number, evaluation.state(step.name), step.name == here)
        for number, step in enumerate(steps.STEPS, start=1)
    ]
    return [
        *listed,
        StepLine(steps.REVIEW, "Review and submit", len(listed) + 1, "open", here == steps.REVIEW),
    ]


def _review(evaluation: Evaluation, who: Principal) -> Context:
    titles = {step.name: step.title for step in steps.STEPS}
    spec = evaluation.spec
    return {
        "first_use": None
        if spec is None
        else first_use_of(who.workspace, spec.environment, spec.resources.cluster),
        "table": None if evaluation.plan is None else picture.tabulate(evaluation.plan, _mine(evaluation)),
        # The review lists every problem above its picture already.
        "missing": [],
        "listed": [(problem, titles[problem.step]) for problem in evaluation.problems],
        "spec_json": "" if spec is None else json.dumps(spec.to_json(), indent=2, ensure_ascii=False),
        "spec": spec,
        "job_script": evaluation.job_script,
        "scheduler_name": evaluation.scheduler_name,
        "may_submit": spec is not None and evaluation.plan is not None and not evaluation.errors,
    }


def _missing(evaluation: Evaluation, here: str) -> list[tuple[WizardProblem, str]]:
    """Returns the problems of other steps that prevent the picture, each with the title of its step."""
    elsewhere = [
        problem for problem in evaluation.errors if problem.step != here and not problem.is_unvisited
    ]
    return [(problem, steps.BY_NAME[problem.step].title) for problem in elsewhere]


def _mine(evaluation: Evaluation) -> frozenset[str]:
    return frozenset(evaluation.spec.environment_variables) if evaluation.spec else frozenset()


def _source(form: SourceForm, who: Principal) -> Context:
    facts = choices.source_facts(read_source((form.typed.get("source") or [""])[0]), who)
    return {
        "facts": facts,
        "gallery": choices.gallery(who.workspace),
        "runs": choices.last_runs(who.workspace, 5),
        "chosen_runs": (form.typed.get("runs") or ["script"])[0],
        "tokens": {name: tokens(form, name) for name in ("arguments", "command")},
        # Without JavaScript the blank row is the only way to add one; the script clones it.
        "input_rows": [*form.input_rows(), ("", "", "", "")],
        **_data(who),
    }


def _data(who: Principal) -> Context:
    """Returns what the data of a run can be chosen from."""
    versions = [
        (write_data_source(DataInput(dataset=name, version=number)), f"{name}, {_version_words(number)}")
        for name, number in dataset_choices(who.workspace)
    ]
    datastores = [(name, name) for name in datastore_names(who.workspace)]
    groups = [{"label": "Datasets", "options": versions}, {"label": "Datastores", "options": datastores}]
    return {
        "data_choices": [group for group in groups if group["options"]],
        "readings": READING_WORDS,
        "known_data": {value for value, _ in (*versions, *datastores)},
    }


def _version_words(number: int | None) -> str:
    return "newest version" if number is None else f"version {number}"


def tokens(form: SourceForm, name: str) -> tuple[str, ...]:
    """Returns the typed text of the field as a list of arguments; empty if it cannot be parsed."""
    try:
        return split_arguments((form.typed.get(name) or [""])[0])
    except ValueError:
        return ()


def _cards(form: DistributionForm, entries: dict[str, Entry]) -> list[Card]:
    return [
        Card(kind, is_chosen, tuple(entries[field.name] for field in fields))
        for kind, is_chosen, fields in form.cards()
    ]


def _resources(form: ResourcesForm, distribution: StepForm[object], who: Principal) -> Context:
    clusters = cluster_choices.cluster_choices(who.workspace)
    chosen = (form.typed.get("cluster") or [""])[0] or default_cluster(who)
    processes = processes_per_node(distribution)
    return {
        "clusters": [(cluster, min(cluster.most_gpus, processes)) for cluster in clusters],
        "chosen_cluster": chosen,
        "is_former_cluster": cluster_choices.is_former_cluster(chosen, clusters),
        "output_stores": list_output_stores(who.workspace),
    }


def _environment(form: EnvironmentForm, who: Principal) -> Context:
    environments = choices.environment_choices(who.workspace)
    chosen = (form.typed.get("environment") or [""])[0]
    rare = [item for item in environments if item.is_rare]
    return {
        "environments": [item for item in environments if not item.is_rare],
        "rare_environments": rare,
        "is_rare_environment": any(item.value == chosen for item in rare),
        "chosen_environment": chosen,
        "is_known_environment": any(item.value == chosen for item in environments),
        "experiments": choices.experiment_choices(who.workspace),
        # Without JavaScript the blank row is the only way to add one; the script clones it.
        "variable_rows": [*form.variable_rows(), ("", "", "value")],
        "secret_names": list(dict.fromkeys(secret.name for secret in secrets.visible(who))),
        "tag_rows": [*form.tag_rows(), ("", "")],
    }
