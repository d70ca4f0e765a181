"""What is done to many runs at once: each by the verb that would do it alone, and a report of what was
refused, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jobs import tags
from jobs.errors import Conflict
from jobs.models import Run
from jobs.scheduling import run_actions
from tracking.history import stars_and_pins
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.access import Principal, lacking
from workspaces.models import User
from workspaces.states import Role

MOST = 1000
LARGEST = 2**31 - 1
"""What the database can hold as a run's number."""
MOST_NAMED = 8
MOST_TOLD = 10
LONGEST_VALUE = 8000


@dataclass(frozen=True)
class Verb:
    """`done`: as in "3 runs are archived". `nothing`: why a run was left alone that the verb changes nothing
    of."""

    act: Callable[[Run, User], bool]
    done: str
    nothing: str
    role: Role = Role.CONTRIBUTOR


@dataclass(frozen=True)
class Report:
    """`done`: the numbers of the runs. `refused`: number -> why."""

    verb: str
    done: tuple[int, ...]
    refused: Mapping[int, str]

    def sentences(self) -> list[tuple[bool, str]]:
        """Whether it went well, and a sentence."""
        found = [
            (
                True,
                (
                    f"{_runs(self.done)} "
                    f"{VERBS[self.verb].done.format(are='is' if len(self.done) == 1 else 'are')}."
                ),
            )
        ]
        alike: dict[str, list[int]] = defaultdict(list)
        for number, why in self.refused.items():
            alike[why].append(number)
        # A refusal of the run's own names it already.
        refusals = [
            why if why.startswith("Run ") else f"{_runs(numbers)}: {why}" for why, numbers in alike.items()
        ]
        shown = [(False, sentence) for sentence in refusals[:MOST_TOLD]]
        rest = (
            [(False, f"{len(refusals) - MOST_TOLD} more were refused.")] if len(refusals) > MOST_TOLD else []
        )
        return [*(found if self.done else ()), *shown, *rest]


class NotAllowed(Exception):
    """The person's role does not suffice; the message says which does."""


def act(who: Principal, verb: str, numbers: Sequence[int], *, key: str = "", value: str = "") -> Report:
    """To these runs of the workspace. Raises SpecError for what is wrong with the request itself,
    NotAllowed."""
    if verb not in VERBS:
        raise SpecError("verb", f"must be one of {', '.join(VERBS)}")
    if not who.may(VERBS[verb].role):
        raise NotAllowed(lacking(who, VERBS[verb].role))
    if not 0 < len(set(numbers)) <= MOST:
        raise SpecError("runs", f"name 1 to {MOST} runs by their numbers")
    possible = [number for number in numbers if number <= LARGEST]
    known = {
        run.number: run
        for run in Run.objects.ever_of(who.workspace).filter(number__in=possible).defer("preview", "spec")
    }
    done: list[int] = []
    refused: dict[int, str] = {}
    change = _change(verb, key, value)
    for number in sorted(set(numbers)):
        why = _tried(change, known.get(number), verb, who.user)
        if why:
            refused[number] = why
        else:
            done.append(number)
    return Report(verb, tuple(done), refused)


def _change(verb: str, key: str, value: str) -> Callable[[Run, User], bool]:
    if verb not in ("tag", "untag"):
        return VERBS[verb].act
    key = key.strip().replace("\x00", "")
    if not 0 < len(key) <= tags.LONGEST_KEY:
        raise SpecError("key", f"a tag's key has 1 to {tags.LONGEST_KEY} characters")
    if len(value) > LONGEST_VALUE:
        raise SpecError("value", f"a tag's value has {LONGEST_VALUE} characters at most")
    return (
        (lambda run, who: _tag(run, who, key, value.replace("\x00", "")))
        if verb == "tag"
        else lambda run, _: _untag(run, key)
    )


def _tried(change: Callable[[Run, User], bool], run: Run | None, verb: str, who: User) -> str:
    """Why not; empty where it is done."""
    if run is None:
        return "is not there, or not yours to see."
    if run.deleted_at is not None and verb != "restore":
        return "is deleted; restore it first."
    try:
        return "" if change(run, who) else VERBS[verb].nothing
    except (Conflict, SpecError) as error:
        return str(error)


def _tag(run: Run, who: User, key: str, value: str) -> bool:
    tags.put(run, {key: value})
    audit.record(who, "run.tag", str(run), run.workspace, key=key)
    return True


def _untag(run: Run, key: str) -> bool:
    return bool(tags.drop(run, [key]))


def _runs(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"Run {numbers[0]}"
    named = ", ".join(map(str, numbers[:MOST_NAMED]))
    return f"{len(numbers)} runs ({named}{', …' if len(numbers) > MOST_NAMED else ''})"


def _nothing(_: Run, __: User) -> bool:
    return False


VERBS: dict[str, Verb] = {
    "tag": Verb(_nothing, "{are} tagged", ""),
    "untag": Verb(_nothing, "no longer bear the tag", "does not bear that tag."),
    "archive": Verb(run_actions.archive, "{are} archived", "is archived already."),
    "unarchive": Verb(run_actions.unarchive, "{are} in the list again", "is in the list already."),
    "delete": Verb(
        run_actions.delete, "{are} deleted, and can be restored for some days", "is deleted already."
    ),
    "restore": Verb(run_actions.restore, "{are} restored", "is not deleted."),
    "cancel": Verb(run_actions.cancel, "{are} asked to end", "is over or being canceled already."),
    "pin": Verb(stars_and_pins.pin, "{are} pinned", "is pinned already."),
    "unpin": Verb(stars_and_pins.unpin, "{are} no longer pinned", "is not pinned."),
    "star": Verb(stars_and_pins.star, "{are} starred", "has your star already.", Role.VIEWER),
    "unstar": Verb(stars_and_pins.unstar, "{are} without your star", "has no star of yours.", Role.VIEWER),
}
