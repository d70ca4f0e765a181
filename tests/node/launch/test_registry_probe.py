"""Which registries are silent, asked by a node before it builds on their images."""

from __future__ import annotations

import socket
import threading

import pytest

from trainhub_node.environments.making import registry_probe
from trainhub_node.environments.making.registry_probe import is_silent_registry


def test_only_one_that_takes_connections_and_sends_nothing_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_probe, "SILENCE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert is_silent_registry(address)
    assert not is_silent_registry(address), "nobody listens there: podman says so at once"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert not is_silent_registry(f"127.0.0.1:{server.getsockname()[1]}"), "it speaks no TLS"
        thread.join()
