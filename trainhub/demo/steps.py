"""What a visitor of the demo may try, each with the address where it begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from jobs.models import Run
from jobs.states import RunState
from trainhub.demo.story import H100S, LEARNING_RATES, SILENT, SWEEP_TAG
from workspaces.models import Workspace


@dataclass(frozen=True)
class Step:
    """`is_post`: the address makes something, and takes a form."""

    title: str
    sentence: str
    address: str
    is_post: bool = False


def steps_to_try(workspace: Workspace) -> tuple[Step, ...]:
    """Returns the steps whose runs exist at present, in the order in which they are best tried."""
    return tuple(_steps(workspace))


def _steps(workspace: Workspace) -> Iterator[Step]:
    runs = Run.objects.for_workspace(workspace).listed().order_by("-number").only("number", "display_name")
    hello = reverse("wizard-example", args=["hello"])
    yield Step(
        "Start a run of your own", "Hello needs no packages and ends within seconds.", hello, is_post=True
    )
    failed = runs.filter(state=RunState.FAILED).first()
    if failed is not None:
        address = reverse("run", args=[failed.number])
        yield Step(f"See why run {failed.number} failed", "Which rank, which line, and what to do.", address)
    silent = runs.filter(display_name=SILENT).first()
    if silent is not None:
        address = reverse("run", args=[silent.number])
        yield Step("Watch a rank go silent", "The others wait for it; its lane stops.", address)
    swept = runs.filter(tags__key=SWEEP_TAG, params__key="seed", params__value="1")
    numbers = sorted(run.number for run in swept[: len(LEARNING_RATES)])
    if len(numbers) > 1:
        address = reverse("compare") + "?" + urlencode({"runs": ",".join(map(str, numbers))}, safe=",")
        yield Step("Compare five learning rates", "One is too high, and one too low.", address)
    address = reverse("cluster", args=[H100S])
    yield Step("Find the GPU that slows a run", "It is hot, and seven others wait for it.", address)
