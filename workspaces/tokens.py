"""API tokens of people: random, shown once, stored as SHA-256. A token has a scope, and may expire."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from workspaces.access import Principal, access_changed, membership_principal
from workspaces.authentication import token_calls
from workspaces.authentication.clients import client_name
from workspaces.authentication.token_text import digest, new_token
from workspaces.database.compiled_queries import compiled
from workspaces.database.outages import optional_write
from workspaces.models import ApiToken, User, Workspace
from workspaces.states import TokenScope

PREFIX = "th"
HINT_LENGTH = 8
# By this header a request says in which workspace it means to act, so that a wrong token changes nothing.
WORKSPACE_HEADER = "X-TrainHub-Workspace"
USE_IS_NOTED_EVERY = timedelta(minutes=1)
LIFETIMES_DAYS = (30, 90, 365)
DEFAULT_LIFETIME_DAYS = 90
# What a token of each scope is for, as the end of "This token may only …".
PURPOSES = {
    TokenScope.READ: "read",
    TokenScope.LOG: "log runs of its own with MLflow's client",
    TokenScope.REGISTER: "log runs of its own with MLflow's client and register their models",
    TokenScope.SUBMIT: "read, log, and submit, cancel and clone runs",
}


class TokenRefused(Exception):
    """The token is known, but not valid for this request. `message` is a sentence with the remedy."""

    status = 403

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class TokenExpired(TokenRefused):
    status = 401

    def __init__(self, expired_at: datetime) -> None:
        super().__init__(
            f"This token expired on {expired_at:%Y-%m-%d at %H:%M} UTC; make a new one under Settings."
        )


class TokenIsLimited(TokenRefused):
    def __init__(self, scope: TokenScope) -> None:
        super().__init__(f"This token may only {PURPOSES[scope]}; make one with more access under Settings.")


class TokenOfOtherWorkspace(TokenRefused):
    def __init__(self, own: Workspace, requested: str) -> None:
        super().__init__(
            f"This token acts in the workspace {own.slug}, and the header {WORKSPACE_HEADER} names "
            f"{requested[:50]!r}; leave the header out, or make a token there."
        )


class TokenNamesNoWorkspace(TokenRefused):
    def __init__(self, requested: str) -> None:
        problem = f"they are not a member of {requested[:50]!r}" if requested else "the request names none"
        super().__init__(
            f"This token acts in any workspace of its person, which the header {WORKSPACE_HEADER} has to "
            f"name, and {problem}."
        )


def issue(
    user: User,
    workspace: Workspace | None,
    name: str,
    *,
    scope: TokenScope = TokenScope.WRITE,
    lifetime: timedelta | None = None,
) -> tuple[ApiToken, str]:
    """Creates a token of `user` for `workspace`, None for all of theirs. Returns it with its text, which is
    stored nowhere. `lifetime` None: it does not expire."""
    text = new_token(PREFIX)
    expires_at = None if lifetime is None else timezone.now() + lifetime
    token = ApiToken.objects.create(
        user=user,
        workspace=workspace,
        name=name,
        digest=digest(text),
        hint=text[:HINT_LENGTH],
        scope=scope,
        expires_at=expires_at,
    )
    return token, text


def authenticate(text: str, requested: str = "", user_agent: str = "") -> Principal | None:
    """Returns the person to whom this token belongs; None if it is unknown or revoked, or its person has left
    or was deactivated. `requested`: the workspace that the request names, "" for none.
    `user_agent`: that header of the request, which is noted with the use.

    Raises TokenExpired, and TokenRefused if the token does not act in the requested workspace.
    `require_scope` checks what the token may do."""
    now = timezone.now()
    token = _valid(text, now)
    if token is None:
        return None
    workspace = token.workspace
    if workspace is None and requested.isprintable():
        workspace = Workspace.objects.filter(slug=requested).first()
    scope = TokenScope(token.scope)
    principal = membership_principal(token.user, workspace, scope) if workspace is not None else None
    if principal is None and token.workspace is None:
        raise TokenNamesNoWorkspace(requested)
    if principal is not None:
        require_workspace(principal.workspace, requested)
        _note_use(token, now, client_name(user_agent))
    return principal


def own(who: Principal) -> QuerySet[ApiToken]:
    """Returns the tokens with which programs act as this person in the workspace, those for all workspaces
    included."""
    here = Q(workspace=who.workspace) | Q(workspace=None)
    return ApiToken.objects.filter(here, user=who.user, revoked_at=None)


def workspaces_of(text: str, method: str, path: str) -> list[Workspace] | None:
    """Returns the workspaces in which this token acts, by name; None if it is unknown or its person belongs
    to none. Raises TokenRefused if it has expired or may not make this request."""
    token = _valid(text, timezone.now())
    if token is None:
        return None
    require_scope(TokenScope(token.scope), method, path)
    rows = Workspace.objects.filter(memberships__user=token.user).order_by("slug")
    return list(rows if token.workspace is None else rows.filter(pk=token.workspace.pk)) or None


def _valid(text: str, now: datetime) -> ApiToken | None:
    token = next(iter(_tokens(digest(text))), None)
    if token is not None and token.expires_at is not None and token.expires_at <= now:
        raise TokenExpired(token.expires_at)
    return token


@compiled
def _tokens(digest_of_text: str) -> QuerySet[ApiToken]:
    tokens = ApiToken.objects.select_related("user", "workspace")
    return tokens.filter(digest=digest_of_text, revoked_at=None, user__is_active=True)


def require_scope(scope: TokenScope, method: str, path: str) -> None:
    """Checks what a token may do. Raises TokenIsLimited if its scope does not include the request."""
    if not token_calls.may_call(scope, method, path):
        raise TokenIsLimited(scope)


def require_workspace(workspace: Workspace, requested: str) -> None:
    """Checks the workspace that a request names, "" for none, against that of its token. Raises
    TokenOfOtherWorkspace."""
    if requested and requested != workspace.slug:
        raise TokenOfOtherWorkspace(workspace, requested)


def revoke(token: ApiToken) -> None:
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    access_changed(token.user)


def revoke_text(text: str) -> str:
    """Revokes the token with this text. Returns its name."""
    token = ApiToken.objects.select_related("user").get(digest=digest(text))
    revoke(token)
    return token.name


def revoke_all(user: User) -> int:
    """Revokes every token of `user` in every workspace; returns how many were still valid."""
    now = timezone.now()
    valid = ApiToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), user=user, revoked_at=None)
    revoked = valid.update(revoked_at=now)
    access_changed(user)
    return revoked


def _note_use(token: ApiToken, now: datetime, client: str) -> None:
    # A write per request would make every reader queue for SQLite's one writer.
    if token.last_used_at is None or now - token.last_used_at > USE_IS_NOTED_EVERY:
        # The condition is repeated in the UPDATE, so that requests at the same moment write once.
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_IS_NOTED_EVERY)
        with optional_write():
            ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now, last_client=client)
