"""Drafts of the wizard, stored as rows. The id is part of the URL, so that two browser tabs can edit two
drafts."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404

from jobs.models import Draft, Run
from jobs.wizard import steps
from jobs.wizard.assemble import take_apart
from jobs.wizard.forms import Raw
from jobs.wizard.parts import EnvironmentPart, Parts
from trainhub_launch.spec import EnvironmentRef, RunSpec
from workspaces.access import Principal

# Milliseconds of the browser's clock, sent with the form: says which of two posts was typed later.
STAMP = "typed_at"


def start(
    who: Principal,
    spec: RunSpec | None = None,
    *,
    environment: EnvironmentRef | None = None,
    cloned_from: Run | None = None,
) -> Draft:
    """Creates an empty draft, or one whose forms are filled in for `spec`, or one in which only `environment`
    is chosen. `cloned_from`: the run that `spec` was taken from."""
    typed = {} if spec is None else steps.raw_of(take_apart(spec))
    if environment is not None:
        typed = {"environment": steps.raw_of(Parts(environment=EnvironmentPart(environment)))["environment"]}
    return Draft.objects.create(workspace=who.workspace, user=who.user, steps=typed, cloned_from=cloned_from)


def find(who: Principal, draft_id: uuid.UUID) -> Draft:
    """Returns the person's own draft. Raises Http404 for a draft that does not exist or belongs to somebody
    else."""
    draft = mine(who).filter(pk=draft_id).select_related("submitted_run", "cloned_from").first()
    if draft is None:
        raise Http404
    return draft


def mine(who: Principal) -> QuerySet[Draft]:
    return Draft.objects.filter(workspace=who.workspace, user=who.user).order_by("-updated_at")


def open_drafts(who: Principal, limit: int = 6) -> list[Draft]:
    """Returns the latest drafts that were edited and not submitted. Drafts of examples that were only opened
    are left out."""
    # Only a browser's post and `put` store the stamp; a draft made from a spec has none until it is edited.
    latest = mine(who).filter(submitted_run=None).exclude(steps={})[:50]
    return [draft for draft in latest if any(STAMP in typed for typed in draft.steps.values())][:limit]


def save_step(draft: Draft, step: str, typed: Raw) -> None:
    """Stores the typed fields of a step, valid or not. Has no effect if the stored ones were typed later,
    because requests may arrive out of order."""
    own_fields = steps.BY_NAME[step].form.unvalidated_fields

    def change(before: Raw) -> Raw:
        # The page saves while the user types, and two requests of the same browser may overtake each other.
        if _stamp(typed) < _stamp(before):
            return before
        # The form in the browser may still have the source from before an upload that has finished meanwhile.
        return typed | {name: before[name] for name in own_fields if name in before}

    _change(draft, step, change)


def put(draft: Draft, step: str, **changed: str) -> None:
    """Changes single fields of a step and keeps the other fields as typed."""
    blank = steps.raw_of(Parts())[step]
    _change(
        draft,
        step,
        lambda before: (
            # The stamp marks the draft as edited. It is 0 unless a post set it, so that any later post is
            # accepted.
            {STAMP: ["0"]} | (before or blank) | {name: [value] for name, value in changed.items()}
        ),
    )


def _change(draft: Draft, step: str, change: Callable[[Raw], Raw]) -> None:
    with transaction.atomic():
        # All steps are in one JSON column: without the lock, a save of another step could be overwritten.
        fresh = Draft.objects.select_for_update().get(pk=draft.pk)
        # A save that arrives after the submission is ignored, because the draft must match its run.
        if fresh.submitted_run_id is None:
            fresh.steps = fresh.steps | {step: change(fresh.steps.get(step, {}))}
            fresh.save(update_fields=["steps", "updated_at"])
    draft.steps = fresh.steps


def submitted(draft: Draft, run: Run) -> None:
    draft.submitted_run = run
    draft.save(update_fields=["submitted_run", "updated_at"])


def _stamp(typed: Raw) -> int:
    return to_number((typed.get(STAMP) or ["0"])[0])


def to_number(text: str) -> int:
    """Returns the whole number in a field that the page's script fills, 0 for any other text. 15 digits are
    more than a time in milliseconds has, and `int` raises an error for thousands of them."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else 0
