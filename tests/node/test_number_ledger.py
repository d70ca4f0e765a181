from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trainhub_node import proc, records
from trainhub_node.isolation import number_ledger, uid_range
from trainhub_node.isolation.number_ledger import REST_S, NoFreeNumber, NumberLedger

NUMBERS = range(1_900_000_001, 1_900_000_004)


def gone(key: object) -> bool:
    return False


def there(key: object) -> bool:
    return True


def key(number: int) -> tuple[str, int]:
    return f"{number:032x}", 1


def rest(folder: Path, number: int, *, since_s: float, boot: str | None = None) -> None:
    """Sets back the last look at a number that rests, by the clock of the ledger."""
    entry = records.read(str(folder / str(number)))
    entry |= {"at": time.clock_gettime(time.CLOCK_BOOTTIME) - since_s, "boot": boot or proc.boot_id()}
    records.write(str(folder / str(number)), entry)


class TestTaking:
    def test_each_attempt_has_its_own_and_the_same_again(self, tmp_path: Path) -> None:
        ledger = NumberLedger(tmp_path / "uids", NUMBERS)
        taken = {ledger.take(key(number)) for number in range(3)}
        assert taken == set(NUMBERS)
        assert ledger.take(key(1)) in taken

    def test_a_restarted_agent_knows_what_is_taken(self, tmp_path: Path) -> None:
        first = NumberLedger(tmp_path / "uids", NUMBERS).take(key(1))
        assert NumberLedger(tmp_path / "uids", NUMBERS).take(key(1)) == first

    def test_none_is_given_twice(self, tmp_path: Path) -> None:
        ledger = NumberLedger(tmp_path / "uids", NUMBERS)
        for number in range(3):
            ledger.take(key(number))
        with pytest.raises(NoFreeNumber, match="TRAINHUB_NODE_UIDS"):
            ledger.take(key(3))

    def test_one_that_was_never_used_is_free_again(self, tmp_path: Path) -> None:
        ledger = NumberLedger(tmp_path / "uids", NUMBERS)
        for number in range(3):
            ledger.take(key(number))
        ledger.give_back(key(2))
        assert ledger.take(key(4)) in NUMBERS

    def test_a_damaged_file_is_no_free_number(self, tmp_path: Path) -> None:
        (tmp_path / "uids").mkdir()
        (tmp_path / "uids" / str(NUMBERS[0])).write_text("{")
        ledger = NumberLedger(tmp_path / "uids", NUMBERS)
        assert {ledger.take(key(number)) for number in range(2)} == set(NUMBERS[1:])


class TestRest:
    def taken(self, tmp_path: Path) -> tuple[NumberLedger, int]:
        ledger = NumberLedger(tmp_path / "uids", NUMBERS[:1])
        number = ledger.take(key(1))
        ledger.sweep(gone, set())
        return ledger, number

    def is_free(self, tmp_path: Path) -> bool:
        ledger = NumberLedger(tmp_path / "uids", NUMBERS[:1])
        ledger.sweep(gone, set())
        try:
            ledger.take(key(2))
        except NoFreeNumber:
            return False
        return True

    def test_begins_when_the_folder_is_gone_and_lasts_a_day(self, tmp_path: Path) -> None:
        _, number = self.taken(tmp_path)
        rest(tmp_path / "uids", number, since_s=REST_S - 60)
        assert not self.is_free(tmp_path)
        rest(tmp_path / "uids", number, since_s=61)
        assert self.is_free(tmp_path)

    def test_does_not_begin_while_the_folder_is_there(self, tmp_path: Path) -> None:
        ledger = NumberLedger(tmp_path / "uids", NUMBERS[:1])
        number = ledger.take(key(1))
        ledger.sweep(there, set())
        assert "rested_s" not in records.read(str(tmp_path / "uids" / str(number)))

    def test_begins_anew_if_something_belongs_to_the_number(self, tmp_path: Path) -> None:
        _, number = self.taken(tmp_path)
        rest(tmp_path / "uids", number, since_s=REST_S - 60)
        NumberLedger(tmp_path / "uids", NUMBERS[:1]).sweep(gone, {number})
        rest(tmp_path / "uids", number, since_s=120)
        assert not self.is_free(tmp_path)

    def test_does_not_count_the_time_before_a_reboot(self, tmp_path: Path) -> None:
        _, number = self.taken(tmp_path)
        rest(tmp_path / "uids", number, since_s=10 * REST_S, boot="another boot")
        assert not self.is_free(tmp_path)

    def test_a_clock_that_was_set_has_no_effect(self, tmp_path: Path) -> None:
        """The day's clock is not asked: a file that seems old, or new, changes nothing."""
        _, number = self.taken(tmp_path)
        for moment in (0, time.time() + 100 * REST_S):
            os.utime(tmp_path / "uids" / str(number), (moment, moment))
            assert not self.is_free(tmp_path)


def test_owners_are_those_of_processes_and_of_files_for_everybody(tmp_path: Path) -> None:
    assert os.getuid() in number_ledger.owners()


class TestRange:
    @pytest.mark.parametrize("value", ["1", "5-9", "2000-1000", "a-b", "1900000000-4000000000", "-"])
    def test_numbers_that_are_none_are_refused(self, value: str) -> None:
        with pytest.raises(ValueError, match="two account numbers"):
            uid_range.read(value)

    def test_numbers_of_containers_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "subuid").write_text("ann:100000:65536\n# bob:1:2\n")
        monkeypatch.setattr(uid_range, "SUBORDINATE_IDS", (tmp_path / "subuid", tmp_path / "none"))
        with pytest.raises(ValueError, match="overlaps with 100000-165535"):
            uid_range.read("150000-160000")
        assert uid_range.read("200000-200010") == range(200000, 200011)

    def test_numbers_that_a_container_does_not_have_are_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "uid_map").write_text("         0     100000      65536\n")
        monkeypatch.setattr(uid_range, "ID_MAPS", (tmp_path / "uid_map",))
        with pytest.raises(ValueError, match="no accounts in this container"):
            uid_range.read("")
        assert uid_range.read("30000-31000") == range(30000, 31001)
