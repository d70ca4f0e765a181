"""What `up` as root with RUN_AS refuses to start on, or to give away: finding S26, and what would undo its
remedy."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attacks.server.separated import (
    HUB_ACCOUNT,
    RUNS_ACCOUNT,
    SeparatedHub,
    needs_root,
    public_folder,
    uid_of,
)
from trainhub import installation
from trainhub.up.console import Stop
from trainhub.up.separation import ownership
from trainhub.up.separation.command import AgentFacts

pytestmark = needs_root


@pytest.fixture
def folder() -> Iterator[Path]:
    with public_folder() as made:
        yield made


def refusal(hub: SeparatedHub) -> str:
    hub.is_new = True
    with pytest.raises(AssertionError):
        hub.start()
    assert hub.process is not None
    assert hub.process.wait(10) == 1
    return hub.said()


class TestAccounts:
    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({"HUB_AS": "no-such-account"}, "HUB_AS=no-such-account does not exist on this machine"),
            ({"HUB_AS": "root"}, "HUB_AS=root is root"),
            ({"HUB_AS": RUNS_ACCOUNT}, "HUB_AS and RUN_AS are both"),
            ({"RUN_AS": "no-such-account"}, "RUN_AS=no-such-account is not an account"),
        ],
    )
    def test_accounts_that_separate_nothing_are_refused(
        self, folder: Path, settings: dict[str, str], sentence: str
    ) -> None:
        assert sentence in refusal(SeparatedHub(folder, **settings))

    @pytest.mark.skipif(
        "trainhub" in {entry.pw_name for entry in pwd.getpwall()}, reason="this machine has the account"
    )
    def test_without_an_account_and_without_useradd_it_says_how_to_make_one(self, folder: Path) -> None:
        said = refusal(SeparatedHub(folder, HUB_AS="", PATH="/nonexistent"))
        assert "useradd --system" in said
        assert "RUN_AS=root" in said

    def test_a_folder_that_the_hub_could_exchange_is_not_given_to_the_agent(self, folder: Path) -> None:
        (folder / "hubs").mkdir()
        os.chown(folder / "hubs", uid_of(HUB_ACCOUNT), -1)
        said = refusal(SeparatedHub(folder, NODE_DIR=str(folder / "hubs" / "node")))
        assert "root's agent works there" in said


@pytest.fixture
def give_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Prepare a DATA_DIR that an earlier hub of root's has left; returns its new part for the hub's
    account."""
    data = folder / "data"
    (data / "blobs" / "ab").mkdir(parents=True)
    (data / "blobs" / "ab" / "file").write_text("content")
    (data / "secret-key").write_text("secret")
    (data / "node" / "attempts").mkdir(parents=True)
    for name, value in (("DATA_DIR", data), ("NODE_DIR", data / "node")):
        monkeypatch.setattr(installation, name, value)

    def prepare() -> Path:
        ownership.prepare(pwd.getpwnam(HUB_ACCOUNT))
        return data / "hub"

    return prepare


class TestGivingAway:
    def test_only_what_is_the_hubs_changes_its_owner(self, give_away: Callable[[], Path]) -> None:
        hub = give_away()
        assert (hub / "blobs" / "ab" / "file").read_text() == "content"
        assert {path.lstat().st_uid for path in (hub, *hub.rglob("*"))} == {uid_of(HUB_ACCOUNT)}
        assert {
            (hub.parent / name).lstat().st_uid for name in ("", "node", "node/attempts", "run", "logs")
        } == {0}

    def test_a_move_that_was_interrupted_is_finished(
        self, give_away: Callable[[], Path], folder: Path
    ) -> None:
        (folder / "data" / ownership.STAGING).mkdir(mode=0o700)
        shutil.move(folder / "data" / "secret-key", folder / "data" / ownership.STAGING)
        hub = give_away()
        assert sorted(path.name for path in hub.iterdir()) == ["blobs", "secret-key"]
        assert not (folder / "data" / ownership.STAGING).exists()

    def test_a_second_start_changes_nothing(self, give_away: Callable[[], Path]) -> None:
        give_away()
        (give_away().parent / "of-root").write_text("")
        assert not (give_away() / "of-root").exists()

    def test_a_link_is_not_followed_but_refused(self, give_away: Callable[[], Path], folder: Path) -> None:
        victim = folder / "victim"
        victim.write_text("root's")
        (folder / "data" / "blobs" / "link").symlink_to(victim)
        with pytest.raises(Stop, match="is neither a folder nor a plain file"):
            give_away()
        assert victim.stat().st_uid == 0
        assert (folder / "data" / "secret-key").stat().st_uid == 0

    def test_a_second_name_of_a_file_is_refused(self, give_away: Callable[[], Path], folder: Path) -> None:
        victim = folder / "victim"
        victim.write_text("root's")
        (folder / "data" / "blobs" / "name").hardlink_to(victim)
        with pytest.raises(Stop, match="has a second name elsewhere"):
            give_away()
        assert victim.stat().st_uid == 0

    def test_a_file_of_somebody_else_is_refused(self, give_away: Callable[[], Path], folder: Path) -> None:
        os.chown(folder / "data" / "blobs" / "ab" / "file", uid_of(RUNS_ACCOUNT), -1)
        with pytest.raises(Stop, match="belongs to nobody"):
            give_away()

    def test_a_folder_that_has_another_account_is_refused(self, give_away: Callable[[], Path]) -> None:
        os.chown(give_away(), uid_of(RUNS_ACCOUNT), -1)
        with pytest.raises(Stop, match="Set HUB_AS to its owner"):
            give_away()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"node": "../../etc", "token": "a", "authority": ""}',
        '{"node": "a", "token": "a b", "authority": ""}',
        '{"node": 1, "token": "a", "authority": ""}',
        '{"node": "a", "token": "a\\n", "authority": ""}',
    ],
)
def test_root_checks_what_the_hub_says_about_its_agent(text: str) -> None:
    with pytest.raises(Stop, match="Start TrainHub again"):
        AgentFacts.parse(text)
