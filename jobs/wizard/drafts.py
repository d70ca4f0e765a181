"""A wizard under way is a row: its id is in the address, so two tabs are two drafts."""

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
from jobs.wizard.parts import Parts
from trainhub_launch.spec import RunSpec
from workspaces.access import Principal

STAMP = "typed_at"
"""Milliseconds of the browser's clock, sent with the form: says which of two posts was typed later."""


def start(who: Principal, spec: RunSpec | None = None) -> Draft:
    """An empty draft, or one that holds what would have been typed for `spec`."""
    typed = {} if spec is None else steps.raw_of(take_apart(spec))
    return Draft.objects.create(workspace=who.workspace, user=who.user, steps=typed)


def find(who: Principal, draft_id: uuid.UUID) -> Draft:
    """A person's own draft; anyone else's does not exist."""
    found = mine(who).filter(pk=draft_id).select_related("submitted_run").first()
    if found is None:
        raise Http404
    return found


def mine(who: Principal) -> QuerySet[Draft]:
    return Draft.objects.filter(workspace=who.workspace, user=who.user).order_by("-updated_at")


def open_drafts(who: Principal, limit: int = 6) -> list[Draft]:
    """Worked on and not submitted: where one can go on. An example that was only looked at is not among
    them."""
    latest = mine(who).filter(submitted_run=None).exclude(steps={})[:50]
    return [draft for draft in latest if any(STAMP in typed for typed in draft.steps.values())][:limit]


def keep(draft: Draft, step: str, typed: Raw) -> None:
    """Store what was typed, valid or not. A post that was overtaken by a later one changes nothing."""
    held = steps.BY_NAME[step].form.held

    def change(before: Raw) -> Raw:
        if _stamp(typed) < _stamp(before):
            return before
        return typed | {name: before[name] for name in held if name in before}

    _change(draft, step, change)


def put(draft: Draft, step: str, **changed: str) -> None:
    """Change single fields of a step, leaving what was typed in the others."""
    blank = steps.raw_of(Parts())[step]
    _change(
        draft,
        step,
        lambda before: (
            {STAMP: ["0"]} | (before or blank) | {name: [value] for name, value in changed.items()}
        ),
    )


def _change(draft: Draft, step: str, change: Callable[[Raw], Raw]) -> None:
    with transaction.atomic():
        fresh = Draft.objects.select_for_update().get(pk=draft.pk)
        if fresh.submitted_run_id is None:
            fresh.steps = fresh.steps | {step: change(fresh.steps.get(step, {}))}
            fresh.save(update_fields=["steps", "updated_at"])
    draft.steps = fresh.steps


def submitted(draft: Draft, run: Run) -> None:
    draft.submitted_run = run
    draft.save(update_fields=["submitted_run", "updated_at"])


def _stamp(typed: Raw) -> int:
    text = (typed.get(STAMP) or ["0"])[0]
    return int(text) if text.isascii() and text.isdigit() else 0
