"""S11: whatever the broker answers, the hub's worker does not end, and takes messages again afterwards.

Beat has a test of its own: tests/worker/test_scheduler.py."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest
import redis

from tests import runs
from tests.hub import Hub, eventually

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    running = Hub(tmp_path_factory.mktemp("errors") / "data")
    try:
        yield running.start()
        running.cancel_all()
    finally:
        running.stop()


def broker(hub: Hub) -> redis.Redis:
    """With the hub's own rights."""
    return redis.Redis.from_url(json.loads((hub.data_dir / "run" / "services.json").read_text())["redis_url"])


def works(hub: Hub) -> bool:
    """The worker takes the message of a submission, and the run ends well."""
    with broker(hub) as server:
        server.config_resetstat()
        run = runs.submit(hub, "print('still here')")

        def is_taken() -> bool:
            counts = server.info("commandstats")
            return bool(counts.get("cmdstat_lpush", {}).get("calls", 0)) and server.llen("hub") == 0

        eventually(is_taken, 60, f"the worker takes its message: {hub.log('worker')[-3000:]}")
    return bool(runs.wait_for(hub, run, "Completed"))


class TestErrors:
    def test_of_a_command_that_is_refused_for_a_while_end_nothing(self, hub: Hub) -> None:
        worker, log_size = hub.pid("worker"), len(hub.log("worker"))
        with broker(hub) as server:
            for command in ("brpop", "sadd", "zadd", "ping"):
                server.execute_command("ACL SETUSER", "default", f"-{command}")
                # Its message makes the worker use the other commands; brpop it uses every second.
                runs.submit(hub, "print('submitted meanwhile')")
                time.sleep(6)
                server.execute_command("ACL SETUSER", "default", "+@all")
        assert works(hub)
        assert hub.pid("worker") == worker
        said = hub.log("worker")[log_size:]
        assert "The broker failed (" in said
        assert len(said.splitlines()) < 400, said

    def test_of_a_server_that_is_busy_with_a_script_end_nothing(self, hub: Hub) -> None:
        worker = hub.pid("worker")
        with broker(hub) as server, broker(hub) as other:
            server.config_set("busy-reply-threshold", 200)

            def spin() -> None:
                with pytest.raises(redis.ResponseError):
                    other.eval("while true do end", 0)

            for _ in range(3):
                thread = threading.Thread(target=spin)
                thread.start()
                time.sleep(3)
                eventually(lambda: _killed(server), 20)
                thread.join(20)
                time.sleep(1)
            server.config_set("busy-reply-threshold", 5000)
        assert works(hub)
        assert hub.pid("worker") == worker

    def test_of_connections_that_are_cut_again_and_again_end_nothing(self, hub: Hub) -> None:
        worker = hub.pid("worker")
        with broker(hub) as server:
            for _ in range(20):
                server.execute_command("CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")
                time.sleep(0.2)
        assert works(hub)
        assert hub.pid("worker") == worker

    def test_of_a_full_server_end_nothing(self, hub: Hub) -> None:
        worker = hub.pid("worker")
        with broker(hub) as server:
            server.config_set("maxmemory", "1mb")
            time.sleep(6)
            server.config_set("maxmemory", 0)
        assert works(hub)
        assert hub.pid("worker") == worker


def _killed(server: redis.Redis) -> bool:
    try:
        return bool(server.script_kill())
    except (redis.ResponseError, redis.ConnectionError):
        return False
