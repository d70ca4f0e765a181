"""Actions on many runs at once, with a report of the runs for which they failed, and why."""

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

MAX_RUNS = 1000
# The largest run number that the database can store.
MAX_RUN_NUMBER = 2**31 - 1
MAX_LISTED_RUNS = 8
MAX_SENTENCES = 10
MAX_VALUE_LENGTH = 8000


@dataclass(frozen=True)
class BulkAction:
    """An action on runs. `done` completes a sentence such as "3 runs are archived". `nothing` is the sentence
    for a run that the action does not change."""

    act: Callable[[Run, User], bool]
    done: str
    nothing: str
    role: Role = Role.CONTRIBUTOR


@dataclass(frozen=True)
class BulkReport:
    """Result of an action: `done` are numbers of runs, `refused` maps numbers to reasons."""

    verb: str
    done: tuple[int, ...]
    refused: Mapping[int, str]

    def sentences(self) -> list[tuple[bool, str]]:
        """Returns (is success, sentence) pairs."""
        success = [
            (
                True,
                (
                    f"{_runs(self.done)} "
                    f"{ACTIONS[self.verb].done.format(are='is' if len(self.done) == 1 else 'are')}."
                ),
            )
        ]
        by_reason: dict[str, list[int]] = defaultdict(list)
        for number, reason in self.refused.items():
            by_reason[reason].append(number)
        # Reasons that start with "Run" name the run already.
        refusals = [
            reason if reason.startswith("Run ") else f"{_runs(numbers)}: {reason}"
            for reason, numbers in by_reason.items()
        ]
        sentences = [(False, sentence) for sentence in refusals[:MAX_SENTENCES]]
        more = (
            [(False, f"{len(refusals) - MAX_SENTENCES} more failed.")]
            if len(refusals) > MAX_SENTENCES
            else []
        )
        return [*(success if self.done else ()), *sentences, *more]


class BulkNotAllowed(Exception):
    """The person's role is too low; the message says which role is needed."""


def apply_to_runs(
    principal: Principal, verb: str, numbers: Sequence[int], *, key: str = "", value: str = ""
) -> BulkReport:
    """Applies an action to runs of the workspace. Raises SpecError for an invalid request and BulkNotAllowed
    if the person's role is too low."""
    if verb not in ACTIONS:
        raise SpecError("verb", f"must be one of {', '.join(ACTIONS)}")
    if not principal.may(ACTIONS[verb].role):
        raise BulkNotAllowed(lacking(principal, ACTIONS[verb].role))
    if not 0 < len(set(numbers)) <= MAX_RUNS:
        raise SpecError("runs", f"name 1 to {MAX_RUNS} runs by number")
    valid = [number for number in numbers if number <= MAX_RUN_NUMBER]
    by_number = {
        run.number: run
        for run in Run.objects.with_deleted_for_workspace(principal.workspace)
        .filter(number__in=valid)
        .defer("preview", "spec")
    }
    done: list[int] = []
    refused: dict[int, str] = {}
    change = _change(verb, key, value)
    # Each run is changed on its own, so that a run that refuses does not undo the others.
    for number in sorted(set(numbers)):
        reason = _try_change(change, by_number.get(number), verb, principal.user)
        if reason:
            refused[number] = reason
        else:
            done.append(number)
    return BulkReport(verb, tuple(done), refused)


def _change(verb: str, key: str, value: str) -> Callable[[Run, User], bool]:
    if verb not in ("tag", "untag"):
        return ACTIONS[verb].act
    # PostgreSQL refuses text with NUL.
    key = key.strip().replace("\x00", "")
    if not 0 < len(key) <= tags.MAX_KEY_LENGTH:
        raise SpecError("key", f"a tag's key has 1 to {tags.MAX_KEY_LENGTH} characters")
    if len(value) > MAX_VALUE_LENGTH:
        raise SpecError("value", f"a tag's value has {MAX_VALUE_LENGTH} characters at most")
    return (
        (lambda run, user: _tag(run, user, key, value.replace("\x00", "")))
        if verb == "tag"
        else lambda run, user: _untag(run, user, key)
    )


def _try_change(change: Callable[[Run, User], bool], run: Run | None, verb: str, user: User) -> str:
    """Applies the change; returns the reason if it failed, else ""."""
    if run is None:
        return "does not exist, or you may not see it."
    if run.deleted_at is not None and verb != "restore":
        return "is deleted; restore it first."
    try:
        return "" if change(run, user) else ACTIONS[verb].nothing
    except (Conflict, SpecError) as error:
        return str(error)


def _tag(run: Run, user: User, key: str, value: str) -> bool:
    tags.set_tags(run, {key: value})
    audit.record(user, "run.tag", str(run), run.workspace, key=key)
    return True


def _untag(run: Run, user: User, key: str) -> bool:
    if not tags.delete_tags(run, [key]):
        return False
    audit.record(user, "run.untag", str(run), run.workspace, key=key)
    return True


def _runs(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"Run {numbers[0]}"
    listed = ", ".join(map(str, numbers[:MAX_LISTED_RUNS]))
    return f"{len(numbers)} runs ({listed}{', …' if len(numbers) > MAX_LISTED_RUNS else ''})"


def _unchanged(_: Run, __: User) -> bool:
    return False


ACTIONS: dict[str, BulkAction] = {
    # `_change` builds the functions of `tag` and `untag`, because they need a key and a value.
    "tag": BulkAction(_unchanged, "{are} tagged", ""),
    "untag": BulkAction(_unchanged, "no longer have the tag", "does not have that tag."),
    "archive": BulkAction(run_actions.archive, "{are} archived", "is archived already."),
    "unarchive": BulkAction(run_actions.unarchive, "{are} no longer archived", "is not archived."),
    "delete": BulkAction(
        run_actions.delete, "{are} deleted, and can be restored for some days", "is deleted already."
    ),
    "restore": BulkAction(run_actions.restore, "{are} restored", "is not deleted."),
    "cancel": BulkAction(
        run_actions.cancel, "{are} being canceled", "has ended or is being canceled already."
    ),
    "pin": BulkAction(stars_and_pins.pin, "{are} pinned", "is pinned already."),
    "unpin": BulkAction(stars_and_pins.unpin, "{are} no longer pinned", "is not pinned."),
    "star": BulkAction(stars_and_pins.star, "{are} starred", "is starred already.", Role.VIEWER),
    "unstar": BulkAction(stars_and_pins.unstar, "{are} no longer starred", "is not starred.", Role.VIEWER),
}
