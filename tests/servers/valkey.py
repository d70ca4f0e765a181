"""A further Valkey on the loopback."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from tests.hub import eventually, free_port
from trainhub.up.children import end_with_parent
from trainhub.up.valkey import _binary


@contextmanager
def another_valkey() -> Iterator[str]:
    port = free_port()
    argv = [str(_binary()), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    process = subprocess.Popen(
        argv,
        stdout=subprocess.DEVNULL,
        preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
    )
    url = f"redis://127.0.0.1:{port}/0"
    try:
        with redis.Redis.from_url(url) as server:
            eventually(lambda: _answers(server), 20, "it answers")
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _answers(server: redis.Redis) -> bool:
    try:
        return bool(server.ping())
    except redis.ConnectionError:
        return False
