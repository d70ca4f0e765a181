"""The table of the wizard's steps: each has one form, which yields one part. The review follows and has no
form."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from jobs.wizard.distribution_form import DistributionForm
from jobs.wizard.environment_form import EnvironmentForm
from jobs.wizard.forms import Raw, StepForm
from jobs.wizard.parts import Parts
from jobs.wizard.resources_form import ResourcesForm
from jobs.wizard.source_form import SourceForm

REVIEW = "review"


@dataclass(frozen=True)
class Step:
    """A step of the wizard. `name` is also the field of `Parts` that its form yields."""

    name: str
    title: str
    sentence: str
    form: type[StepForm[Any]]


STEPS = (
    Step(
        "source",
        "Source and script",
        "What runs: a frozen copy of your code, and what starts in it.",
        SourceForm,
    ),
    Step(
        "distribution", "Distribution", "How many processes there are, and who starts them.", DistributionForm
    ),
    Step("resources", "Resources", "Where it runs, and how long it may.", ResourcesForm),
    Step(
        "environment",
        "Environment",
        "The software it needs, its variables, and what it is called.",
        EnvironmentForm,
    ),
)
BY_NAME = {step.name: step for step in STEPS}
NAMES = (*BY_NAME, REVIEW)


def after(name: str) -> str:
    """Returns the step after this one; for the review, the review itself."""
    return NAMES[min(NAMES.index(name) + 1, len(NAMES) - 1)]


def before(name: str) -> str | None:
    return NAMES[NAMES.index(name) - 1] if name != NAMES[0] else None


def raw_of(parts: Parts) -> dict[str, Raw]:
    """Returns, by step, the form data that yields these parts."""
    return {step.name: step.form.raw(getattr(parts, step.name)) for step in STEPS}


def forms_of(typed: dict[str, Raw]) -> dict[str, StepForm[object]]:
    """Returns a bound form for every step; a step without typed data has the defaults."""
    untouched = raw_of(Parts())
    return {step.name: step.form(typed.get(step.name) or untouched[step.name]) for step in STEPS}


def parts_of(forms: dict[str, StepForm[Any]]) -> Parts:
    """Returns the parts of valid forms. Steps without a form have their defaults."""
    return Parts(**{field.name: forms[field.name].part() for field in fields(Parts) if field.name in forms})
