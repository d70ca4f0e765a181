"""The audit trail: append-only, one line per act that changes who may do what, or destroys something."""

from __future__ import annotations

from workspaces.models import AuditEvent, User, Workspace


def record(
    actor: User | str, verb: str, subject: str, workspace: Workspace | None = None, **detail: object
) -> AuditEvent:
    """`actor` a person, or a name such as 'node alpha'; `detail` must be JSON and hold nothing secret."""
    name = actor if isinstance(actor, str) else actor.get_username()
    return AuditEvent.objects.create(
        actor=name, verb=verb, subject=subject[:200], workspace=workspace, detail=detail
    )
