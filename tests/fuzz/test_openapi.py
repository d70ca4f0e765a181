"""Random requests made from the OpenAPI document, sent to a real hub as every role.

No answer may be a 5xx, every answer must be declared in the document, and a single request may cost the web
server at most two seconds of CPU and 64 MiB of memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from tests.api import contract
from tests.hub import Hub

MAX_CPU_S = 2.0
MAX_GROWTH_BYTES = 64 * 2**20
IS_LONG = os.environ.get("TRAINHUB_FUZZ_PROFILE") == "long"
EXAMPLES = 150 if IS_LONG else 1
"""Requests for each operation; every role sends each of them."""
SKIPPED = ("/api/v1/nodes/", "/api/v1/clusters/")
"""Changing these as an operator would take away the node and the cluster that the other requests are
about."""
ROLES = ("viewer", "contributor", "owner", "operator")
MAKE_PEOPLE = """
import json
from workspaces.models import Membership, User, Workspace
from workspaces.tokens import issue
workspace = Workspace.objects.order_by("id").first()
tokens = {}
for role in ("viewer", "contributor", "owner", "operator"):
    user = User.objects.create_user("fuzz-" + role, password=None)
    user.is_operator = role == "operator"
    user.save()
    Membership.objects.create(workspace=workspace, user=user, role="owner" if role == "operator" else role)
    tokens[role] = issue(user, workspace, "fuzz")[1]
print(json.dumps(tokens))
"""
REQUESTS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not IS_LONG,
    database=None,
    suppress_health_check=list(HealthCheck),
)

pytestmark = pytest.mark.slow


@dataclass
class Target:
    """A hub that only this file asks."""

    hub: Hub
    tokens: dict[str, str] = field(default_factory=dict)

    def web(self) -> psutil.Process:
        return psutil.Process(self.hub.pid("web"))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    hub = Hub(tmp_path_factory.mktemp("fuzz") / "data")
    try:
        hub.start()
        printed = hub.manage("shell", "-c", MAKE_PEOPLE).stdout.strip().splitlines()[-1]
        yield Target(hub, json.loads(printed))
    finally:
        hub.stop()


def test_no_request_breaks_the_hub(target: Target) -> None:
    schema = schemathesis.openapi.from_dict(contract.document())
    failures = []
    for result in schema.get_all_operations():
        operation = result.ok()  # type: ignore[union-attr]  # our own document has no invalid operation
        try:
            _try(target, operation)
        except AssertionError as error:
            failures.append(f"{operation.label}: {error}")  # the other operations are tried all the same
    assert not failures, "\n\n".join(failures)


def _try(target: Target, operation: Any) -> None:
    """Each request is sent as every role: making one costs more CPU than the hub's answers."""
    spares_operator = operation.method != "get" and operation.path.startswith(SKIPPED)
    roles = [role for role in ROLES if role != "operator" or not spares_operator]

    @REQUESTS
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        for role in roles:
            _send(target, case, role)

    send()


def _send(target: Target, case: Any, role: str) -> None:
    process = target.web()
    cpu, memory = _cpu_s(process), process.memory_info().rss
    headers = {"Authorization": f"Bearer {target.tokens[role]}"}
    answer = case.call(base_url=target.hub.url, headers=headers, timeout=30, allow_redirects=False)
    message = f"as {role}, {case.as_curl_command()} answers {answer.status_code}: {answer.text[:500]}"
    assert answer.status_code < 500, message
    content_type = answer.headers.get("content-type", [""])[0].partition(";")[0]
    if answer.status_code not in contract.UNDECLARED_STATUSES:
        body = answer.json() if content_type.endswith("json") and answer.content else None
        contract.compare(case.method, _path(answer.request.url), answer.status_code, content_type, body)
    assert _cpu_s(process) - cpu < MAX_CPU_S, f"too much CPU: {message}"
    assert process.memory_info().rss - memory < MAX_GROWTH_BYTES, f"too much memory: {message}"


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _path(url: str) -> str:
    return httpx.URL(url).path
