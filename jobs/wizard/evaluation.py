"""Evaluates a draft as a whole: its forms, the spec and plan that they yield, and all problems by form
field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from jobs.models import Draft
from jobs.scheduling import run_actions
from jobs.scheduling.default_cluster import with_cluster
from jobs.wizard import steps
from jobs.wizard.assemble import assemble
from jobs.wizard.defaults import draft_forms
from jobs.wizard.forms import StepForm, below
from jobs.wizard.labels import with_labels
from jobs.wizard.parts import Parts, SourcePart
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.spec import ExampleSource, RunSpec
from workspaces.access import Principal

# Until something is chosen to run, the picture shows the layout around this.
STAND_IN = SourcePart(ExampleSource("hello"), script="your_script.py")
# Names that a sentence may begin with and that keep their lower case.
TOOLS = frozenset(
    {"nccl", "gloo", "mpirun", "mpiexec", "torchrun", "deepspeed", "horovodrun", "accelerate", "python"}
)


@dataclass(frozen=True)
class WizardProblem:
    """A problem with a draft, shown below the form field `field` of `step`. `is_unvisited`: a required field
    that is merely not filled in yet. `action`, `link`: those of the finding."""

    level: str
    step: str
    field: str
    message: str
    is_unvisited: bool = False
    action: str = ""
    link: str = ""


@dataclass(frozen=True)
class Evaluation:
    """The result of evaluating a draft.

    `plan` is None if the typed data yields none. `stands_in`: the plan uses `your_script.py`, because no
    source is chosen yet. `touched`: the steps that were saved at least once. `job_script`,
    `scheduler_name`: see Preview."""

    forms: dict[str, StepForm[object]]
    spec: RunSpec | None = None
    plan: LaunchPlan | None = None
    problems: tuple[WizardProblem, ...] = ()
    stands_in: bool = False
    touched: frozenset[str] = field(default_factory=frozenset)
    job_script: str = ""
    scheduler_name: str = ""

    @property
    def errors(self) -> tuple[WizardProblem, ...]:
        return tuple(problem for problem in self.problems if problem.level == "error")

    def of(self, step: str) -> tuple[WizardProblem, ...]:
        return tuple(problem for problem in self.problems if problem.step == step)

    def state(self, step: str) -> str:
        """Returns `done`, `errors`, or `open` if the step was not saved yet or only lacks required fields."""
        errors = [problem for problem in self.of(step) if problem.level == "error"]
        if step not in self.touched or (errors and all(problem.is_unvisited for problem in errors)):
            return "open"
        return "errors" if errors else "done"


def evaluate(draft: Draft, who: Principal) -> Evaluation:
    forms = draft_forms(draft, who)
    blank = Evaluation(forms, problems=tuple(_form_problems(forms)), touched=frozenset(draft.steps))
    valid, is_repaired = _checkable_forms(forms)
    # With a source that is wrong rather than missing, a picture of another script would be misleading.
    stands_in = "source" not in valid and all(problem.is_unvisited for problem in blank.of("source"))
    # The plan needs the parts of all steps; only a missing source can be replaced by the stand-in.
    if not set(forms) - set(valid) <= ({"source"} if stands_in else set()):
        return blank
    parts = replace(steps.parts_of(valid), source=STAND_IN) if stands_in else steps.parts_of(valid)
    try:
        spec = with_cluster(assemble(parts), who)
    except SpecError as error:
        # The reader raises for the first wrong field only.
        return _with(blank, [Finding("error", error.field, error.message)], stands_in)
    preview = run_actions.preview(spec, who)
    checked = _with(blank, preview.findings, stands_in)
    if is_repaired:
        return checked
    return replace(
        checked,
        spec=None if stands_in else spec,
        plan=preview.plan,
        job_script=preview.job_script,
        scheduler_name=preview.scheduler_name,
    )


def _checkable_forms(forms: dict[str, StepForm[object]]) -> tuple[dict[str, StepForm[object]], bool]:
    """Returns the valid forms, and those that are valid once their wrong independent fields have the
    defaults; and whether there are any of the latter."""
    valid, is_repaired = {}, False
    for name, form in forms.items():
        if form.is_valid():
            valid[name] = form
        elif set(form.errors) <= form.independent_fields:
            defaults = steps.raw_of(Parts())[name]
            repaired = type(form)(form.typed | {field: defaults[field] for field in form.errors})
            if repaired.is_valid():
                valid[name], is_repaired = repaired, True
    return valid, is_repaired


def _with(blank: Evaluation, findings: Iterable[Finding], stands_in: bool) -> Evaluation:
    """Returns the evaluation with the findings added. Findings about the stand-in source are dropped, because
    the user did not choose it."""
    problems = (_problem(finding, blank.forms) for finding in findings)
    remaining = tuple(problem for problem in problems if not (stands_in and problem.step == "source"))
    return replace(blank, problems=(*blank.problems, *remaining), stands_in=stands_in)


def _form_problems(forms: dict[str, StepForm[object]]) -> Iterator[WizardProblem]:
    for step, form in forms.items():
        for name, errors in form.errors.as_data().items():
            for error in errors:
                # Forms give the code `required` to a missing value only, also in their own checks.
                yield WizardProblem(
                    "error", step, name, str(error.messages[0]), is_unvisited=error.code == "required"
                )


def _problem(finding: Finding, forms: dict[str, StepForm[object]]) -> WizardProblem:
    """Assigns a finding to the form field where its value was typed; to the source field if no field
    matches."""
    for step, form in forms.items():
        name = below(finding.field, form.paths)
        if name is not None:
            return WizardProblem(
                finding.level,
                step,
                name,
                _sentence(with_labels(finding.message, forms)),
                action=finding.action,
                link=finding.link,
            )
    return WizardProblem(finding.level, "source", "source", f"{finding.field}: {finding.message}")


def _sentence(message: str) -> str:
    """Returns a finding's message as a sentence. Findings are written to follow a field's name; here the
    first letter is capitalised, unless the first word is a file name or a tool."""
    first = message.split(" ", 1)[0].rstrip(",:")
    text = message[:1].upper() + message[1:] if first.isalpha() and first not in TOOLS else message
    return text if text.endswith((".", "?", "!")) else f"{text}."
