"""What operators do with workspaces: make, rename, archive, restore.

A workspace is never deleted: its runs are what people trained with. While it is archived, its members can
read everything in it and change nothing."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from workspaces import audit
from workspaces.access import access_changed
from workspaces.administration.active_work import active_runs_in
from workspaces.administration.errors import AdministrationError
from workspaces.models import Invitation, InvitationLink, Membership, User, Workspace
from workspaces.states import Role

MAX_SLUG, MAX_NAME = 50, 100


def create(who: User | str, name: str, slug: str = "", *, owner: User) -> Workspace:
    """Makes a workspace with `owner` as its first owner. `slug`: its name in the API and at the command line;
    by default made from `name`. Raises AdministrationError."""
    title = _checked_name(name)
    chosen = slug.strip() or slugify(title)[:MAX_SLUG].strip("-")
    _check_slug(chosen)
    if owner.is_service_account:
        raise AdministrationError("owner", f"{owner} is a service account; choose a person")
    if not owner.is_active:
        raise AdministrationError("owner", f"{owner} is deactivated; choose somebody else")
    try:
        with transaction.atomic():
            workspace = Workspace.objects.create(slug=chosen, name=title)
            Membership.objects.create(workspace=workspace, user=owner, role=Role.OWNER)
            audit.record(who, "workspace.created", chosen, workspace, name=title, owner=owner.get_username())
            access_changed(owner)
    except IntegrityError as error:
        raise AdministrationError(
            "slug", f"there is a workspace {chosen!r} already; choose another"
        ) from error
    return workspace


@transaction.atomic
def rename(who: User | str, workspace: Workspace, name: str) -> None:
    """Changes the name that pages show; the slug stays. Raises AdministrationError."""
    title = _checked_name(name)
    if Workspace.objects.filter(pk=workspace.pk).exclude(name=title).update(name=title):
        audit.record(who, "workspace.renamed", workspace.slug, workspace, name=title)


@transaction.atomic
def archive(who: User | str, workspace: Workspace) -> bool:
    """Makes a workspace readable only; returns False if it is archived already. Its open invitations are
    withdrawn. Raises AdministrationError while runs in it have not ended, and for the only workspace."""
    # Runs are created under the same lock, so that none begins while it is counted.
    current = Workspace.objects.select_for_update().get(pk=workspace.pk)
    if current.archived_at is not None:
        return False
    if not Workspace.objects.filter(archived_at=None).exclude(pk=workspace.pk).exists():
        raise AdministrationError(
            "workspace", "it is the only one that is not archived; make another one first"
        )
    active = active_runs_in(workspace)
    if active:
        count = "1 run has" if active == 1 else f"{active} runs have"
        raise AdministrationError("workspace", f"{count} not ended in it; wait for the end, or cancel first")
    Workspace.objects.filter(pk=workspace.pk).update(archived_at=timezone.now())
    Invitation.objects.filter(workspace=workspace).delete()
    InvitationLink.objects.filter(workspace=workspace).delete()
    audit.record(who, "workspace.archived", workspace.slug, workspace)
    _access_of_members_changed(workspace)
    return True


@transaction.atomic
def restore(who: User | str, workspace: Workspace) -> bool:
    """Lets the members of an archived workspace work in it again; returns False if it is not archived."""
    if not Workspace.objects.filter(pk=workspace.pk).exclude(archived_at=None).update(archived_at=None):
        return False
    audit.record(who, "workspace.restored", workspace.slug, workspace)
    _access_of_members_changed(workspace)
    return True


@transaction.atomic
def join_as_owner(who: User, workspace: Workspace) -> None:
    """Makes an operator an owner of a workspace, for one whose owners have left. The members see it in their
    list, and the audit trail has it."""
    Membership.objects.update_or_create(workspace=workspace, user=who, defaults={"role": Role.OWNER})
    audit.record(who, "workspace.owner_joined", who.get_username(), workspace)
    access_changed(who)


def _access_of_members_changed(workspace: Workspace) -> None:
    for membership in workspace.memberships.select_related("user"):
        access_changed(membership.user)


def _checked_name(name: str) -> str:
    title = " ".join(name.split())
    if not title or len(title) > MAX_NAME:
        raise AdministrationError("name", f"must have 1 to {MAX_NAME} characters")
    return title


def _check_slug(slug: str) -> None:
    try:
        validate_slug(slug)
    except ValidationError as error:
        raise AdministrationError("slug", "use letters, digits, hyphens and underscores only") from error
    if len(slug) > MAX_SLUG:
        raise AdministrationError("slug", f"must have at most {MAX_SLUG} characters")
