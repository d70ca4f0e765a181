from __future__ import annotations

import socket
from pathlib import Path

from trainhub_node.machine import ports
from trainhub_node.machine.port_locks import PortLocks


class TestFree:
    def test_ascends_from_the_first_and_skips_listeners_and_the_held(self) -> None:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            first, second, *_ = ports.find_free((), 8)
            listener.bind(("127.0.0.1", first))
            listener.listen()

            result = ports.find_free({second}, 8)

        assert result == sorted(result)
        assert len(result) == 8
        assert min(result) >= ports.FIRST_PORT
        assert {first, second} & set(result) == set()


class TestPortLocks:
    def test_what_one_agent_takes_no_other_of_the_machine_does(self, tmp_path: Path) -> None:
        one, other = PortLocks(tmp_path / "ports"), PortLocks(tmp_path / "ports")

        assert [one.acquire(6105), one.acquire(6105), other.acquire(6105), other.acquire(6106)] == [
            True,
            True,
            False,
            True,
        ]
        one.release_others(())
        assert other.acquire(6105)

    def test_found_ports_are_taken(self, tmp_path: Path) -> None:
        one, other = PortLocks(tmp_path), PortLocks(tmp_path)

        assert not set(ports.find_free((), 4, acquire=one.acquire)) & set(
            ports.find_free((), 4, acquire=other.acquire)
        )

    def test_without_a_folder_every_port_may_be_taken(self, tmp_path: Path) -> None:
        assert PortLocks(tmp_path / "not" / "there").acquire(6105)

    def test_a_link_in_place_of_the_folder_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "ports").symlink_to(tmp_path / "elsewhere")

        assert PortLocks(tmp_path / "ports").acquire(6105)
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_an_agent_that_closes_keeps_none_and_takes_none_again(self, tmp_path: Path) -> None:
        one, other = PortLocks(tmp_path), PortLocks(tmp_path)
        one.acquire(6105)

        one.close()

        assert [one.acquire(6106), other.acquire(6105), other.acquire(6106)] == [True, True, True]


class TestNamedIn:
    def test_finds_the_offered_ones_in_any_variable(self) -> None:
        config = '{"cluster": {"worker": ["127.0.0.1:6106", "127.0.0.1:6107"]}}'
        command = {
            "processes": [
                {"env": {"MASTER_PORT": "6105", "TF_CONFIG": config, "OTHER": "16108", "SEED": "x6109"}}
            ]
        }

        assert ports.used_ports(command, range(6105, 6120)) == {6105, 6106, 6107}
