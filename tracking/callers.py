"""Callers of MLflow's protocol: people with API tokens, and jobs with the token of their attempt."""

from __future__ import annotations

import base64
import binascii
import threading
from dataclasses import dataclass

from cachetools import TTLCache
from starlette.types import Scope

from jobs.models import Attempt, Run
from jobs.tokens import PREFIX as JOB_PREFIX
from live.origins import header
from workspaces import process_caches, tokens
from workspaces.authentication.token_text import digest
from workspaces.http.scopes import bearer, principal_of_scope, require_token_use
from workspaces.http.threads import in_thread
from workspaces.models import User, Workspace
from workspaces.states import Role, TokenScope

# A script logs hundreds of times a second, so its token is cached. A revoked token may work this long.
CACHE_S = 1.0
# Sent by MLflow's client after `mlflow.set_workspace`, or with MLFLOW_WORKSPACE.
MLFLOW_WORKSPACE_HEADER = "x-mlflow-workspace"
MAX_CACHED_CALLERS = 10_000


@dataclass(frozen=True)
class Caller:
    """`user` is the person, or the submitter of the job. `job` is the run that the token belongs to, else
    None."""

    workspace: Workspace
    role: Role
    user: User | None
    job: Run | None = None
    scope: TokenScope = TokenScope.WRITE

    def may(self, required: Role) -> bool:
        return self.role.covers(required)

    def may_write(self, run: Run) -> bool:
        """Returns whether the caller may write to the run: a job to itself and its children, a token that
        only logs to runs of its person, a contributor to all runs."""
        if run.workspace_id != self.workspace.pk or not self.may(Role.CONTRIBUTOR) or not self.may_read(run):
            return False
        return self.job is None or self.job.pk in (run.pk, run.parent_id)

    def may_read(self, run: Run) -> bool:
        """Returns whether the caller may read a run of the workspace: all, but with a token that only logs
        those of its person."""
        return not self.scope.only_logs or (self.user is not None and run.created_by_id == self.user.pk)


_lock = threading.Lock()
# By the token's digest: a dump of this process's memory holds no token that could be used.
_cache: TTLCache[str, Caller] = TTLCache(MAX_CACHED_CALLERS, CACHE_S)


async def caller_of(scope: Scope) -> Caller | None:
    """Returns the caller by token or, for a browser, by session; None without a valid one.

    Raises TokenRefused for an expired token, and for a read-only token in a request that changes something.
    """
    text = token_text(scope)
    if text is None:
        principal = await principal_of_scope(scope)
        return None if principal is None else Caller(principal.workspace, principal.role, principal.user)
    requested = requested_workspace(scope)
    key = f"{digest(text)} {requested}"
    with _lock:
        caller = _cache.get(key)
    if caller is None:
        caller = await in_thread(_authenticate, text, requested, header(scope, "user-agent"))
        if caller is None:
            return None
        with _lock:
            _cache[key] = caller
    # On every request, also for cached callers, because it depends on the request's method and address.
    require_token_use(caller.scope, scope)
    return caller


def token_text(scope: Scope) -> str | None:
    """Returns the token of the request, or None. MLflow's client sends MLFLOW_TRACKING_TOKEN as a bearer
    token, or name and password as Basic."""
    return bearer(scope) or _basic(scope)


def requested_workspace(scope: Scope) -> str:
    """Returns the short name of the workspace that the request names, by our header or by that of MLflow's
    client; "" for none."""
    return header(scope, tokens.WORKSPACE_HEADER.lower()) or header(scope, MLFLOW_WORKSPACE_HEADER)


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _cache.clear()


def _authenticate(text: str, requested: str, user_agent: str) -> Caller | None:
    if text.startswith(JOB_PREFIX):
        attempts = Attempt.objects.select_related("run__workspace", "run__created_by", "run__experiment")
        # A job's token expires with its attempt.
        attempt = attempts.filter(token_digest=digest(text), ended_at=None).first()
        if attempt is None:
            return None
        tokens.require_workspace(attempt.run.workspace, requested)
        return Caller(attempt.run.workspace, Role.CONTRIBUTOR, attempt.run.created_by, attempt.run)
    principal = tokens.authenticate(text, requested, user_agent)
    return (
        None
        if principal is None
        else Caller(principal.workspace, principal.role, principal.user, scope=principal.scope)
    )


def _basic(scope: Scope) -> str | None:
    """Returns the password of HTTP Basic authentication, which is the token, or None.

    MLflow's client sends MLFLOW_TRACKING_USERNAME, which may be any name, and MLFLOW_TRACKING_PASSWORD.
    """
    scheme, _, text = header(scope, "authorization").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        password = base64.b64decode(text, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return None
    return password or None
