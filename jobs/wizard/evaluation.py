"""A draft looked at as a whole: its forms, the spec they make, what will run, and every problem beside its
field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from jobs.models import Draft
from jobs.scheduling import run_actions
from jobs.wizard import steps
from jobs.wizard.assemble import assemble
from jobs.wizard.forms import StepForm, below
from jobs.wizard.parts import SourcePart
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.spec import ExampleSource, RunSpec
from workspaces.access import Principal

STAND_IN = SourcePart(ExampleSource("hello"), script="your_script.py")
"""Until something is chosen to run, the picture shows the layout around this."""
TOOLS = frozenset(
    {"nccl", "gloo", "mpirun", "mpiexec", "torchrun", "deepspeed", "horovodrun", "accelerate", "python"}
)


@dataclass(frozen=True)
class Problem:
    """`field` is the form field it stands under. `untold`: merely not filled in yet."""

    level: str
    step: str
    field: str
    message: str
    untold: bool = False


@dataclass(frozen=True)
class Evaluation:
    """`plan` is None where the typed data make none; `stands_in`: it shows `your_script.py`."""

    forms: dict[str, StepForm[Any]]
    spec: RunSpec | None = None
    plan: LaunchPlan | None = None
    problems: tuple[Problem, ...] = ()
    stands_in: bool = False
    touched: frozenset[str] = field(default_factory=frozenset)

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.level == "error")

    def of(self, step: str) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.step == step)

    def state(self, step: str) -> str:
        """`done`, `errors`, or `open`: untouched, or merely not filled in yet."""
        errors = [problem for problem in self.of(step) if problem.level == "error"]
        if step not in self.touched or (errors and all(problem.untold for problem in errors)):
            return "open"
        return "errors" if errors else "done"


def evaluate(draft: Draft, who: Principal) -> Evaluation:
    forms = steps.forms_of(draft.steps)
    valid = {name: form for name, form in forms.items() if form.is_valid()}
    blank = Evaluation(forms, problems=tuple(_form_problems(forms)), touched=frozenset(draft.steps))
    stands_in = "source" not in valid and all(problem.untold for problem in blank.of("source"))
    if not set(forms) - set(valid) <= ({"source"} if stands_in else set()):
        return blank
    parts = replace(steps.parts_of(valid), source=STAND_IN) if stands_in else steps.parts_of(valid)
    try:
        spec = assemble(parts)
    except SpecError as error:
        return _with(blank, [Finding("error", error.field, error.message)], stands_in)
    preview = run_actions.preview(spec, who)
    return replace(
        _with(blank, preview.findings, stands_in),
        spec=None if stands_in else spec,
        plan=preview.plan,
    )


def _with(blank: Evaluation, findings: Iterable[Finding], stands_in: bool) -> Evaluation:
    """A stand-in's own faults are nobody's."""
    found = (_problem(finding, blank.forms) for finding in findings)
    kept = tuple(problem for problem in found if not (stands_in and problem.step == "source"))
    return replace(blank, problems=(*blank.problems, *kept), stands_in=stands_in)


def _form_problems(forms: dict[str, StepForm[Any]]) -> Iterator[Problem]:
    for step, form in forms.items():
        for name, errors in form.errors.as_data().items():
            for error in errors:
                yield Problem("error", step, name, str(error.messages[0]), untold=error.code == "required")


def _problem(finding: Finding, forms: dict[str, StepForm[Any]]) -> Problem:
    """Put a finding beside the field where it was typed; one that fits no field belongs to the source."""
    for step, form in forms.items():
        name = below(finding.field, form.paths)
        if name is not None:
            return Problem(finding.level, step, name, _sentence(finding.message))
    return Problem(finding.level, "source", "source", f"{finding.field}: {finding.message}")


def _sentence(message: str) -> str:
    """Findings are written to follow a field's name; here they stand alone. The name of a file or tool keeps
    its letters."""
    first = message.split(" ", 1)[0].rstrip(",:")
    text = message[:1].upper() + message[1:] if first.isalpha() and first not in TOOLS else message
    return text if text.endswith((".", "?", "!")) else f"{text}."
