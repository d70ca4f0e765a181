from __future__ import annotations

import socket

from trainhub_node import ports


class TestFree:
    def test_ascends_from_the_first_and_skips_listeners_and_the_held(self) -> None:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            first, second, *_ = ports.free((), 8)
            listener.bind(("127.0.0.1", first))
            listener.listen()

            found = ports.free({second}, 8)

        assert found == sorted(found)
        assert len(found) == 8
        assert min(found) >= ports.FIRST
        assert {first, second} & set(found) == set()


class TestNamedIn:
    def test_finds_the_offered_ones_in_any_variable(self) -> None:
        config = '{"cluster": {"worker": ["127.0.0.1:6106", "127.0.0.1:6107"]}}'
        command = {"processes": [{"env": {"MASTER_PORT": "6105", "TF_CONFIG": config, "OTHER": "16108", "SEED": "x6109"}}]}

        assert ports.named_in(command, range(6105, 6120)) == {6105, 6106, 6107}
