"""Leases and rows of servers, by the database's clock."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from workspaces.servers import data_folder, server_registry
from workspaces.servers.data_folder import WrongDatabase
from workspaces.servers.exclusive_work import only_once
from workspaces.servers.models import DataFolder, RoundLease, ServerProcess
from workspaces.servers.round_lease import free_lease, take_lease
from workspaces.servers.server_registry import WEB, OwnProcess

pytestmark = pytest.mark.django_db


def test_one_has_a_lease_until_it_ends() -> None:
    assert take_lease("rounds", "a")
    assert not take_lease("rounds", "b")
    assert take_lease("rounds", "a")
    assert take_lease("other", "b")
    RoundLease.objects.filter(name="rounds").update(until=Now() - timedelta(seconds=1))
    assert take_lease("rounds", "b")
    assert not take_lease("rounds", "a")
    free_lease("rounds", "a")
    assert not take_lease("rounds", "a")
    free_lease("rounds", "b")
    assert take_lease("rounds", "a")


def test_work_is_done_by_one_thread_at_a_time_and_again_after_an_error() -> None:
    with only_once("work") as may, only_once("work") as again, only_once("other") as other:
        assert (may, again, other) == (True, False, True)
    with pytest.raises(ValueError, match="broken"):
        _fail_at_work()
    with only_once("work") as may:
        assert may


def _fail_at_work() -> None:
    with only_once("work") as may:
        raise ValueError("broken" if may else "somebody else does it")


class TestRows:
    def test_a_server_lives_while_it_renews_its_row(self) -> None:
        own = OwnProcess(WEB, "127.0.0.1:8010", is_alone=False)
        server_registry.register_process(own)
        assert [peer.id for peer in server_registry.web_peers(max_offset_s=3)] == [own.id]
        ServerProcess.objects.update(renewed_at=Now() - timedelta(seconds=7))
        assert server_registry.web_peers(max_offset_s=3) == []
        server_registry.renew_process(own, 0.0)
        assert len(server_registry.web_peers(max_offset_s=3)) == 1

    def test_its_successor_takes_its_place_at_once(self) -> None:
        first, second = OwnProcess(WEB), OwnProcess(WEB)
        server_registry.register_process(first)
        server_registry.register_process(second)
        assert [row.pk for row in ServerProcess.objects.all()] == [second.id]

    def test_one_with_a_wrong_clock_answers_only_if_nobody_else_can(self) -> None:
        late = OwnProcess(WEB)
        server_registry.register_process(late)
        server_registry.renew_process(late, -61.0)
        assert [peer.id for peer in server_registry.web_peers(max_offset_s=3)] == [late.id]
        other = ServerProcess.objects.get()
        other.pk, other.name, other.clock_offset_s = "f" * 32, "other", 0.2
        other.save(force_insert=True)
        assert [peer.id for peer in server_registry.web_peers(max_offset_s=3)] == [other.pk]


class TestDataFolder:
    @pytest.fixture(autouse=True)
    def _folder(self, settings: Any, tmp_path: Path) -> None:
        settings.DATA_DIR = tmp_path / "data"
        settings.DATA_DIR.mkdir()

    def elsewhere(self, settings: Any, tmp_path: Path, *, has_content: bool = False) -> None:
        settings.DATA_DIR = tmp_path / "elsewhere"
        settings.DATA_DIR.mkdir(exist_ok=True)
        data_folder.check_pairing(is_further=False, has_content=has_content)

    def test_the_first_start_pairs_it_with_the_database_and_later_ones_find_that(self) -> None:
        for _ in range(2):
            data_folder.check_pairing(is_further=False, has_content=False)
            data_folder.pair_with_database()
        assert (data_folder._file()).read_text().strip() == DataFolder.objects.get().fingerprint

    def test_an_empty_one_is_refused_and_one_that_was_restored_is_not(
        self, settings: Any, tmp_path: Path
    ) -> None:
        data_folder.pair_with_database()
        with pytest.raises(WrongDatabase, match="--adopt-data-folder"):
            self.elsewhere(settings, tmp_path)
        self.elsewhere(settings, tmp_path, has_content=True)
        data_folder.pair_with_database()
        assert DataFolder.objects.get().path == str(tmp_path / "elsewhere")

    def test_that_of_another_hub_is_refused_until_it_is_adopted(self, settings: Any, tmp_path: Path) -> None:
        data_folder.pair_with_database()
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / data_folder.FILE).write_text("another\n")
        with pytest.raises(WrongDatabase, match=f"{tmp_path}/data"):
            self.elsewhere(settings, tmp_path, has_content=True)
        data_folder.adopt_folder()
        self.elsewhere(settings, tmp_path)
