"""The first workspace and the first owner of a fresh installation."""

from __future__ import annotations

import secrets

from django.db import transaction

from workspaces import audit
from workspaces.models import Membership, User, Workspace
from workspaces.states import Role

WORKSPACE = "default"
OWNER = "admin"


@transaction.atomic
def ensure_owner() -> str | None:
    """Creates the workspace `default` and, if there is no person yet, the owner `admin`. Returns the owner's
    new password, otherwise None."""
    workspace, _ = Workspace.objects.get_or_create(slug=WORKSPACE, defaults={"name": "Default"})
    if User.objects.exists():
        return None
    password = secrets.token_urlsafe(12)
    owner = User.objects.create_user(OWNER, password=password, is_operator=True)
    Membership.objects.create(workspace=workspace, user=owner, role=Role.OWNER)
    audit.record("hub", "person.created", OWNER, workspace, role=Role.OWNER)
    return password
