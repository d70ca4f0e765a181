"""The audit trail: append-only, one row for each action that changes permissions or destroys something."""

from __future__ import annotations

from workspaces.models import AuditEvent, User, Workspace


def record(
    actor: User | str, verb: str, subject: str, workspace: Workspace | None = None, **detail: object
) -> AuditEvent:
    """Adds an event to the audit trail. `actor` is a person, or a name such as 'node alpha'; `detail` must be
    JSON and contain nothing secret."""
    name = actor if isinstance(actor, str) else actor.get_username()
    return AuditEvent.objects.create(
        actor=name, verb=verb, subject=subject[:200], workspace=workspace, detail=detail
    )
