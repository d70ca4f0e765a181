"""Memberships that follow a person's groups at a provider or a proxy, each time they sign in.

Such a membership is marked. Those that people have given by hand are never touched, and the last owner of a
workspace stays one."""

from __future__ import annotations

import logging

from django.db import transaction

from workspaces import audit, people
from workspaces.access import access_changed
from workspaces.authentication.external.configuration import GroupMapping, roles_of
from workspaces.models import Membership, User, Workspace
from workspaces.states import Role

log = logging.getLogger(__name__)


@transaction.atomic
def apply_groups(user: User, groups: frozenset[str], mapping: GroupMapping, way: str) -> None:
    """Gives, changes and takes away the memberships of `user` that `mapping` gives to members of groups.
    `way`: by what they have signed in, for the audit trail. Without a mapping nothing changes."""
    if not mapping:
        return
    roles = roles_of(groups, mapping)
    memberships = {
        membership.workspace.slug: membership
        for membership in Membership.objects.select_for_update(of=("self",))
        .select_related("workspace", "user")
        .filter(user=user)
    }
    for slug, membership in memberships.items():
        if membership.is_from_groups:
            _follow(membership, roles.get(slug), way)
    missing = roles.keys() - memberships.keys()
    workspaces = {workspace.slug: workspace for workspace in Workspace.objects.filter(slug__in=missing)}
    for slug in sorted(missing):
        if slug in workspaces:
            _give(user, workspaces[slug], roles[slug], way)
        else:
            log.warning("SIGN_IN_GROUPS names the workspace %s, which does not exist", slug)


def _give(user: User, workspace: Workspace, role: Role, way: str) -> None:
    Membership.objects.create(workspace=workspace, user=user, role=role, is_from_groups=True)
    access_changed(user)
    audit.record(way, "member.added", user.get_username(), workspace, role=role, by_groups=True)


def _follow(membership: Membership, role: Role | None, way: str) -> None:
    """Changes a membership to what the groups give now; None: nothing."""
    try:
        if role is None:
            people.end_membership(way, membership, by_groups=True)
        elif role != membership.role:
            people.set_role(way, membership, role, by_groups=True)
    except people.PeopleError:
        # Somebody has to be able to let others in.
        audit.record(way, "member.kept_owner", str(membership.user), membership.workspace, by_groups=True)
