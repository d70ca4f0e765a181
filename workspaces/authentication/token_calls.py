"""What an API token may do, by its scope: a table of calls. What none of its rows allows is refused.

docs/people.md has the same table in words, which a test compares. On top of it, the role of the token's
person counts, and tokens that only log reach runs of that person only (tracking.callers)."""

from __future__ import annotations

import re
from typing import NamedTuple

from workspaces.states import TokenScope

READ, LOG, REGISTER, SUBMIT, WRITE = (
    TokenScope.READ,
    TokenScope.LOG,
    TokenScope.REGISTER,
    TokenScope.SUBMIT,
    TokenScope.WRITE,
)
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_MLFLOW = r"/(ajax-)?api/[23]\.0/(preview/)?mlflow/"
_FILES = r"/(ajax-)?api/2\.0/mlflow-artifacts/"


class Calls(NamedTuple):
    """`words`: what the calls are for. `methods` None: all."""

    words: str
    scopes: frozenset[TokenScope]
    methods: tuple[str, ...] | None
    path: re.Pattern[str]

    def include(self, method: str, path: str) -> bool:
        is_method = self.methods is None or method in self.methods
        return is_method and self.path.fullmatch(path) is not None


TABLE = (
    Calls(
        "read whatever the person's role may read, and receive live updates",
        frozenset({READ, SUBMIT, WRITE}),
        SAFE_METHODS,
        re.compile(r".*", re.DOTALL),
    ),
    Calls(
        "ask what is too long for an address: previews of runs, other formats of specs, MLflow's searches",
        frozenset({READ, SUBMIT, WRITE}),
        ("POST",),
        re.compile(
            r"/api/v1/runs/preview/|"
            r"/api/v1/specs/(?:export|import)/|"
            + _MLFLOW
            + r"(runs/search|experiments/search|experiments/search-datasets"
            r"|logged-models/search|registered-models/get-latest-versions)"
        ),
    ),
    Calls(
        "read runs of one's own, and experiments, by MLflow's client",
        frozenset({READ, LOG, REGISTER, SUBMIT, WRITE}),
        SAFE_METHODS,
        re.compile(
            r"/version|/health|"
            + _MLFLOW
            + r"(server-info|workspaces(/[^/]+)?|runs/get|metrics/get-history|experiments/get"
            r"|experiments/get-by-name|logged-models/[^/]+)|" + _FILES + r"artifacts(/(?!models/).*)?"
        ),
    ),
    Calls(
        "create runs by MLflow's client, and log to runs of one's own",
        frozenset({LOG, REGISTER, SUBMIT, WRITE}),
        ("POST", "PUT", "PATCH"),
        re.compile(
            _MLFLOW + r"(experiments/create|runs/(create|update|log-metric|log-batch|log-parameter|set-tag"
            r"|delete-tag|log-inputs|outputs|log-model)|logged-models(/(?!search$).+)?)|"
            + _FILES
            + r"(artifacts/(?!models/).+|mpu/.+)"
        ),
    ),
    Calls(
        "register models of runs of one's own by MLflow's client",
        frozenset({REGISTER, WRITE}),
        ("GET", "POST"),
        re.compile(
            _MLFLOW + r"(registered-models/(create|get)|model-versions/(create|get|get-download-uri))"
        ),
    ),
    Calls(
        "upload code; submit, cancel and clone runs",
        frozenset({SUBMIT, WRITE}),
        ("POST",),
        re.compile(r"/api/v1/snapshots/|/api/v1/runs/|/api/v1/runs/[^/]+/(cancel|clone)/"),
    ),
    Calls(
        "revoke itself",
        frozenset({READ, LOG, REGISTER, SUBMIT, WRITE}),
        ("DELETE",),
        re.compile(r"/api/v1/me/token/"),
    ),
    Calls(
        "everything else that the person's role may do",
        frozenset({WRITE}),
        None,
        re.compile(r".*", re.DOTALL),
    ),
)


def may_call(scope: TokenScope, method: str, path: str) -> bool:
    """Returns whether a token of this scope may make the request."""
    return any(scope in calls.scopes and calls.include(method, path) for calls in TABLE)
