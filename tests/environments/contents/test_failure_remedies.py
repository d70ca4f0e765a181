"""What the page of a failed run links to, for failures of its environment."""

from __future__ import annotations

import pytest

from jobs.causes import Cause
from jobs.causes.failures import match_line
from jobs.environment_findings.failure_remedies import failure_remedy
from jobs.models import Attempt, Run
from jobs.states import RunState
from tests.environments.locks import locked
from tests.jobs.builders import launched, node
from tests.people import api_client, client_of
from workspaces.access import Principal

MISSING = "ModuleNotFoundError: No module named 'yaml.nodes'"


def cause_of(exception: str) -> Cause:
    match = match_line(exception)
    assert match is not None
    return Cause(
        "It failed.", match.remedy, 0, exception=exception, kind=match.failure.kind, link=match.failure.link
    )


def run_in(who: Principal, name: str) -> Run:
    node("alpha")
    return launched(who, environment={"name": name})


@pytest.mark.parametrize(
    ("exception", "action", "query"),
    [
        (MISSING, "Add pyyaml", "?from=1&add=pyyaml"),
        ("ModuleNotFoundError: No module named 'horovod'", "Add horovod", "?from=1&add=horovod"),
        ("ModuleNotFoundError: No module named 'deepspeed'", "Add deepspeed", "?from=1&add=deepspeed"),
        ("ModuleNotFoundError: No module named 'apex'", "Edit mine", "?from=1"),
        ("ValueError: numpy.dtype size changed, may indicate", "Pin numpy<2", "?from=1&add=numpy%3C2"),
        ("ImportError: cannot import name 'x' from 'y'", "Edit mine", "?from=1"),
    ],
)
def test_of_an_own_environment(who: Principal, exception: str, action: str, query: str) -> None:
    locked(who)
    remedy = failure_remedy(run_in(who, "mine"), cause_of(exception))
    assert remedy is not None
    assert remedy.action == action
    assert remedy.link.endswith(query)
    assert client_of(who.user).get(remedy.link).status_code == 200


def test_of_a_curated_environment_and_of_an_interpreter(who: Principal) -> None:
    run = run_in(who, "TrainHub-PyTorch-2.13")
    remedy = failure_remedy(run, cause_of(MISSING))
    assert remedy is not None
    page = client_of(who.user).get(remedy.link).content.decode()
    assert "mpi4py\npyyaml</textarea>" in page
    for name in ("TrainHub-Horovod-0.28", "TrainHub-DeepSpeed-0.19"):
        # Nodes build what such a copy needs.
        run.spec["environment"]["name"] = name
        assert failure_remedy(run, cause_of(MISSING)) is not None
    run.spec["environment"]["name"] = "system"
    assert failure_remedy(run, cause_of(MISSING)) is None


def test_stands_on_the_page_and_in_the_api(who: Principal) -> None:
    locked(who)
    run = run_in(who, "mine")
    Run.objects.filter(pk=run.pk).update(state=RunState.FAILED)
    Attempt.objects.filter(run=run).update(cause=cause_of(MISSING).to_json())
    link = "/environments/mine/edit/?from=1&add=pyyaml"
    assert (
        f'href="{link.replace("&", "&amp;")}">Add pyyaml</a>'
        in client_of(who.user).get(f"/runs/{run.number}/").content.decode()
    )
    cause = api_client(who.user).get(f"/api/v1/runs/{run.number}/").json()["cause"]
    assert (cause["action"], cause["link"]) == ("Add pyyaml", link)


class TestForm:
    @pytest.mark.parametrize(
        ("query", "sentence"),
        [
            ("?like=nope", "There is no curated environment"),
            ("?add=-e+.", "cannot be added"),
            ("?add=git%2Bssh://x", "cannot be added"),
            ("?python=2", "is not a minor version of Python"),
            ("?" + "add=a&" * 51, "At most 50 can be added at once"),
            ("?add=%00", "cannot be added"),
        ],
    )
    def test_says_what_is_wrong_with_an_address(self, who: Principal, query: str, sentence: str) -> None:
        answer = client_of(who.user).get(f"/environments/new/{query}")
        assert answer.status_code == 400
        assert sentence in answer.content.decode().replace("&#x27;", "'")

    def test_a_second_copy_gets_another_name(self, who: Principal) -> None:
        locked(who, "pytorch-2.13")
        page = client_of(who.user).get("/environments/new/?like=TrainHub-PyTorch-2.13").content.decode()
        assert 'value="pytorch-2.13-2"' in page
