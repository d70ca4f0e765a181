"""Service accounts: accounts of one workspace for programs such as CI and cron.

Owners make them and their tokens. Nobody signs in as one, and none is an owner or an operator. It does not
depend on the person who made it. Its name is never given to anybody else, not even after it was deleted: the
runs that it owns and the audit trail go on naming it."""

from __future__ import annotations

from django.contrib.auth.hashers import make_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery

from workspaces import audit, people
from workspaces.access import access_changed
from workspaces.models import ApiToken, Membership, User, Workspace
from workspaces.service_accounts.errors import ServiceAccountError
from workspaces.states import Role

MAX_NAME = 150
MAX_ACCOUNTS = 100
# An owner can manage people, so an owner has to be one.
ROLES = (Role.VIEWER, Role.CONTRIBUTOR)


def listed(workspace: Workspace) -> QuerySet[User]:
    """Returns the service accounts of the workspace that were not deleted, by name, each with `role`,
    `token_count` (tokens that were not revoked) and `last_used_at`."""
    role = Membership.objects.filter(user=OuterRef("pk"), workspace=OuterRef("service_workspace"))
    valid = Q(api_tokens__revoked_at=None)
    accounts = User.objects.filter(service_workspace=workspace, memberships__workspace=workspace)
    return accounts.annotate(
        role=Subquery(role.values("role")[:1]),
        token_count=Count("api_tokens", filter=valid),
        last_used_at=Max("api_tokens__last_used_at"),
    ).order_by("username")


def create(who: User | str, workspace: Workspace, name: str, role: Role) -> User:
    """Makes a service account. `who`: the owner who wants it, or a name such as "command line". Raises
    ServiceAccountError."""
    name = User.normalize_username(name.strip())
    _check_name(name)
    _check_role(role)
    if workspace.archived_at is not None:
        raise ServiceAccountError("workspace", f"{workspace} is archived; an operator can restore it")
    maker = who if isinstance(who, str) else who.get_username()
    try:
        with transaction.atomic():
            # Locked, so that two requests at the same moment do not pass the limit together.
            Workspace.objects.select_for_update().get(pk=workspace.pk)
            if listed(workspace).count() >= MAX_ACCOUNTS:
                raise ServiceAccountError(
                    "name", f"there are {MAX_ACCOUNTS} service accounts already; delete one first"
                )
            user = User.objects.create(
                username=name, password=make_password(None), service_workspace=workspace, made_by=maker
            )
            Membership.objects.create(workspace=workspace, user=user, role=role)
            audit.record(who, "service_account.created", name, workspace, role=role)
    except IntegrityError as error:
        raise ServiceAccountError("name", f"{name} was taken a moment ago; choose another") from error
    return user


@transaction.atomic
def change_role(who: User | str, account: User, role: Role) -> None:
    """Gives the account another role in its workspace. Raises ServiceAccountError."""
    _check_role(role)
    people.set_role(who, _membership(account), role)


@transaction.atomic
def set_active(who: User | str, account: User, *, is_active: bool) -> bool:
    """Disables an account, so that its tokens are refused, or enables it, so that they work again. Returns
    False if nothing had to change. Runs that have not ended go on."""
    _membership(account)
    changed = User.objects.filter(pk=account.pk, is_active=not is_active).update(is_active=is_active)
    if changed:
        verb = "service_account.enabled" if is_active else "service_account.disabled"
        audit.record(who, verb, account.get_username(), account.service_workspace)
        access_changed(account)
    return bool(changed)


@transaction.atomic
def delete(who: User | str, account: User) -> None:
    """Deletes an account: its tokens are revoked, its own secrets are deleted, and it is listed no more. Its
    runs stay, with its name."""
    membership = _membership(account)
    User.objects.filter(pk=account.pk).update(is_active=False)
    people.end_membership(who, membership)
    audit.record(who, "service_account.deleted", account.get_username(), membership.workspace)


def tokens_of(account: User) -> QuerySet[ApiToken]:
    """Returns the account's tokens that were not revoked, the one used last first."""
    rows = ApiToken.objects.filter(user=account, revoked_at=None)
    return rows.order_by(F("last_used_at").desc(nulls_last=True), "-created_at")


def _membership(account: User) -> Membership:
    """Returns the membership of an account that was not deleted. Raises ServiceAccountError."""
    rows = Membership.objects.select_related("user", "workspace").filter(
        user=account, workspace=account.service_workspace
    )
    membership = rows.first() if account.is_service_account else None
    if membership is None:
        raise ServiceAccountError("name", f"{account} is not a service account, or was deleted; see the list")
    return membership


def _check_role(role: Role) -> None:
    if role not in ROLES:
        raise ServiceAccountError(
            "role", f"a service account can be {' or '.join(ROLES)}; only people can be {role}"
        )


def _check_name(name: str) -> None:
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError as error:
        raise ServiceAccountError("name", "use letters, digits and @ . + - _ only") from error
    if len(name) > MAX_NAME:
        raise ServiceAccountError("name", f"use at most {MAX_NAME} characters")
    other = User.objects.filter(username__iexact=name).first()
    if other is None:
        return
    kind = "a service account" if other.is_service_account else "a person"
    raise ServiceAccountError(
        "name",
        f"{other} is the name of {kind} here; people and service accounts share their names, also after they "
        "have left, so choose another",
    )
