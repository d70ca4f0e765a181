"""A root agent that runs each attempt under the account of the person who submitted it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.accounts import ADA, BO, TEAM, with_people
from tests.node.builders import environ, script, settings
from tests.node.conftest import end_children
from tests.node.hub import FakeHub
from trainhub_launch.states import ErrorKind, Phase
from trainhub_node import records
from trainhub_node.launch.person_accounts import NoAccount, person_account, read_people
from trainhub_node.run_account import NOBODY, PERSON, Account
from trainhub_node.settings import NodeSettings, SettingsError
from trainhub_node.settings import read as read_settings

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run ranks as another account")
WHO = """
import os
print(os.getuid(), os.getgid(), sorted(os.getgroups()), os.environ["HOME"], os.environ["USER"])
"""


class Node:
    """The folder of an agent on a machine that has the accounts of two people."""

    def __init__(self, folder: Path, hub: FakeHub) -> None:
        self.folder, self.people = folder / "node", folder / "node" / "people"
        self.attempts = self.folder / "attempts"
        self.folder.mkdir(mode=0o711)
        self._environment = environ(hub, self.folder) | {
            "TRAINHUB_NODE_RUN_AS": PERSON,
            "TRAINHUB_NODE_PYTHON": "/usr/bin/python3",
            "TRAINHUB_NODE_REFUSED_ACCOUNTS": "no-such-account:hub",
        }
        self._with_people = with_people(folder)

    @contextmanager
    def agent(self) -> Iterator[None]:
        command = [sys.executable, "-m", "trainhub_node", "run"]
        running = subprocess.Popen(
            [*self._with_people, *command], env=self._environment, start_new_session=True
        )
        try:
            yield
        finally:
            running.kill()
            running.wait(10)


@pytest.fixture
def node(hub: FakeHub) -> Iterator[Node]:
    folder = Path(tempfile.mkdtemp(prefix="trainhub-person-", dir="/var/lib"))
    folder.chmod(0o711)
    try:
        made = Node(folder, hub)
        with made.agent():
            yield made
        end_children(made.folder)
    finally:
        shutil.rmtree(folder)


class TestRuns:
    def test_have_the_account_and_groups_of_their_person(self, hub: FakeHub, node: Node) -> None:
        keys = {name: hub.give(script(hub, WHO, person=name)) for name in ("ada", "bo")}
        for (name, key), number in zip(keys.items(), (ADA, BO), strict=True):
            fact = hub.wait_done(key, 60)
            assert fact.members[0].exit_code == 0, (fact, hub.log(key))
            expected = f"{number} {number} [{number}, {TEAM}] /home/{name} {name}\n"
            assert hub.log(key).decode() == expected
            assert (node.attempts / f"{key[0]}-1" / "work").stat().st_uid == number

    def test_of_one_person_do_not_see_each_other(self, hub: FakeHub, node: Node) -> None:
        forever = "import time\nopen('/tmp/mine', 'w')\nprint('up', flush=True)\ntime.sleep(600)\n"
        first = hub.give(script(hub, forever, person="ada"))
        hub.wait_log(first, b"up", timeout_s=60)
        look = (
            "import os\nprint(os.listdir('/tmp'), [p for p in os.listdir('/proc') if p.isdecimal()] == "
            f"['1', str(os.getpid())], os.path.exists('{node.attempts}/{first[0]}-1'))\n"
        )
        second = hub.give(script(hub, look, person="ada"))
        hub.wait_done(second, 60)
        assert hub.log(second) == b"[] True False\n"

    def test_follow_the_file_of_the_operator(self, hub: FakeHub, node: Node) -> None:
        node.people.write_text("# sign-in name, account\nada.lovelace  ada\n")
        key = hub.give(script(hub, WHO, person="ada.lovelace"))
        assert hub.wait_done(key, 60).members[0].exit_code == 0
        assert hub.log(key).split()[0] == str(ADA).encode()

    @pytest.mark.parametrize(
        ("person", "sentence"),
        [
            ("eve", "Node here has no account 'eve' for eve, who submitted this run"),
            ("root", "Node here does not run programs of root under the account root: it is the agent's own"),
            ("hub", "Node here does not run programs of hub under the account hub: the operator keeps it"),
            (None, "does not name; upgrade the hub."),
            ("", "this run has no such person any more; submit it again as yourself."),
        ],
    )
    def test_of_others_are_refused_before_anything_runs(
        self, hub: FakeHub, node: Node, person: str | None, sentence: str
    ) -> None:
        key = hub.give(script(hub, WHO, person=person))
        fact = hub.wait_done(key, 60)
        assert (fact.phase_at.keys() >= {Phase.DONE}, fact.error_kind) == (True, ErrorKind.LAUNCH)
        assert sentence in fact.error
        folder = node.attempts / f"{key[0]}-1"
        assert not (folder / "terms.json").exists()
        assert not (folder / "work").exists()
        assert "over_at" in records.read(str(folder / "agent.json"))


def person_settings(hub: FakeHub, folder: Path, **changes: object) -> NodeSettings:
    account = Account(PERSON, NOBODY, NOBODY, "/")
    made = settings(hub, folder, run_as=account, python="/usr/bin/python3")
    return replace(made, is_per_person=True, **changes)  # type: ignore[arg-type]


class TestRefusals:
    @pytest.mark.parametrize("account", ["daemon", "nobody"])
    def test_of_accounts_of_the_system(self, hub: FakeHub, tmp_path: Path, account: str) -> None:
        with pytest.raises(NoAccount, match=rf"under the account {account}: it is one of the system"):
            person_account(person_settings(hub, tmp_path), account)

    def test_of_names_that_no_account_can_have(self, hub: FakeHub, tmp_path: Path) -> None:
        for name in ("", "a\0b", "ada:x", "a" * 5000, "+", "1000"):
            with pytest.raises(NoAccount):
                person_account(person_settings(hub, tmp_path), name)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("ada", "line 1 of .* must be a person and an account"),
            ("\nada a\nada b", "line 3 of .* once for each person"),
            ("ada a b", "line 1"),
        ],
    )
    def test_of_a_damaged_file(self, hub: FakeHub, tmp_path: Path, text: str, sentence: str) -> None:
        file = tmp_path / "people"
        file.write_text(text)
        with pytest.raises(NoAccount, match=sentence):
            person_account(person_settings(hub, tmp_path, people=file), "ada")

    def test_of_a_file_that_others_may_change_with_a_remedy_that_works(self, tmp_path: Path) -> None:
        file = tmp_path / "people"
        file.write_text("ada ada\n")
        file.chmod(0o666)
        os.chown(file, pwd.getpwnam("daemon").pw_uid, -1)
        with pytest.raises(ValueError, match="can be changed by others") as refusal:
            read_people(file)
        for command in str(refusal.value).split("`")[1::2]:
            subprocess.run(command.split(), check=True)
        assert read_people(file) == {"ada": "ada"}

    def test_of_a_file_that_does_not_exist(self, hub: FakeHub, tmp_path: Path) -> None:
        variables = environ(hub, tmp_path) | {
            "TRAINHUB_NODE_RUN_AS": PERSON,
            "TRAINHUB_NODE_PEOPLE": str(tmp_path / "none"),
            "TRAINHUB_NODE_PYTHON": "/usr/bin/python3",
        }
        with pytest.raises(SettingsError, match=r"TRAINHUB_NODE_PEOPLE=.* is no file; make it"):
            read_settings(variables)
