"""A hub with an authority of its own: ranks are told whom to believe, for that hub alone."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.launch.builders import make_placement, make_plan, make_spec
from tests.node.builders import order, settings
from tests.node.hub import FakeHub
from tests.node.test_run_as import nobody_account
from trainhub import certificates
from trainhub_launch.spec import Variable
from trainhub_node.agent import Agent
from trainhub_node.run_account import can_execute

TELLS = """
import json, os
names = ("CA_FILE", "CERT_PATH", "CA_BUNDLE", "CERT_FILE")
found = {name: value for name, value in os.environ.items() if name.endswith(names)}
print(json.dumps({name: open(value).read() for name, value in found.items()}))
"""
BOTH = {"TRAINHUB_CA_FILE", "MLFLOW_TRACKING_SERVER_CERT_PATH"}


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """As the agent holds it: nobody else may read it."""
    certificates.ensure(tmp_path / "tls", ["127.0.0.1"])
    (tmp_path / "tls" / "ca.pem").chmod(0o600)
    return tmp_path / "tls" / "ca.pem"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="trainhub-node-") as instance:
        Path(instance).chmod(0o711)
        yield Path(instance)


def values(hub: FakeHub, **variables: str) -> dict[str, str]:
    """Which certificates a rank of a run with these variables is told of, and what it can read there."""
    spec = make_spec(environment_variables={name: Variable(value=value) for name, value in variables.items()})
    (planned,) = make_plan(spec, make_placement()).processes
    key = hub.give(order(hub, {"train.py": TELLS}, planned))
    fact = hub.wait_done(key)
    assert fact.members[0].exit_code == 0, hub.log(key)
    return dict(json.loads(hub.log(key)))


class TestRanks:
    def test_find_the_authority_by_name(
        self, hub: FakeHub, start_agent: Callable[..., Agent], tmp_path: Path, authority: Path
    ) -> None:
        start_agent(settings(hub, tmp_path / "node", hub_ca=authority))

        assert values(hub) == dict.fromkeys(BOTH, authority.read_text())

    def test_of_another_account_may_read_it(
        self, hub: FakeHub, start_agent: Callable[..., Agent], open_folder: Path, authority: Path
    ) -> None:
        if os.geteuid() != 0 or not can_execute("/usr/bin/python3", nobody_account()):
            pytest.skip("only root can run ranks as another account")
        start_agent(
            settings(hub, open_folder, hub_ca=authority, run_as=nobody_account(), python="/usr/bin/python3")
        )

        assert values(hub) == dict.fromkeys(BOTH, authority.read_text())

    @pytest.mark.parametrize("own", ["MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_INSECURE_TLS"])
    def test_hear_nothing_of_it_that_would_close_another_server(
        self, hub: FakeHub, start_agent: Callable[..., Agent], tmp_path: Path, authority: Path, own: str
    ) -> None:
        start_agent(settings(hub, tmp_path / "node", hub_ca=authority))

        assert values(hub, **{own: "true"}).keys() == {"TRAINHUB_CA_FILE"}

    def test_of_a_hub_that_the_world_believes_find_none(self, hub: FakeHub, agent: Agent) -> None:
        assert values(hub) == {}
