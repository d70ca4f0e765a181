"""A database that is away, read-only or full of connections: runs and nodes are unharmed, people are told,
and everything goes on afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from tests import runs
from tests.hub import Hub, eventually
from tests.platform.postgres import PostgresServer

pytestmark = pytest.mark.slow
COUNTS = """
import time
for number in range({lines}):
    print(number, flush=True)
    time.sleep(0.1)
"""
AWAY_S = 20


@pytest.fixture(scope="module")
def shared_server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def server(shared_server: PostgresServer) -> PostgresServer:
    """It runs, whatever the test before has left."""
    if not shared_server.is_running:
        shared_server.start()
    return shared_server


@pytest.fixture(scope="module")
def shared_hub(shared_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("faults")
    hub = Hub(folder / "data", DATABASE_URL=shared_server.url, DATABASE_POOL="8")
    try:
        yield hub.start()
    finally:
        hub.stop()


@pytest.fixture
def hub(shared_hub: Hub, server: PostgresServer) -> Hub:
    with shared_hub.client() as client:
        eventually(lambda: client.get("/api/v1/runs/").status_code == httpx.codes.OK, 60)
    return shared_hub


def wait_for_status(hub: Hub, status: int) -> None:
    """Waits until the API answers so for two seconds. Connections that the server has ended are noticed when
    they are used, within a second."""
    with hub.client() as client:

        def is_lasting() -> bool:
            for _ in range(5):
                if client.get("/api/v1/runs/").status_code != status:
                    return False
                time.sleep(0.4)
            return True

        eventually(is_lasting, 90, f"the API answers {status}")


def test_a_run_outlives_a_database_that_is_away(hub: Hub, server: PostgresServer) -> None:
    run = runs.submit(hub, COUNTS.format(lines=400))
    ends_meanwhile = runs.submit(hub, COUNTS.format(lines=50))
    runs.wait_for(hub, run, "Running")
    runs.wait_for(hub, ends_meanwhile, "Running")
    server.stop()
    paths = ("/", "/sign-in/", "/api/v1/runs/", f"/api/v1/runs/{run}/logs/70_driver_log.txt")
    with hub.client() as client:
        # The web server finds out within a second.
        eventually(lambda: client.get("/").status_code == httpx.codes.SERVICE_UNAVAILABLE, 30)
        began, answers = time.monotonic(), 0
        while time.monotonic() < began + AWAY_S:
            for path in paths:
                request_at = time.monotonic()
                answer = client.get(path)
                assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, (path, answer.text)
                assert answer.headers["Retry-After"]
                assert "cannot reach its database" in answer.text
                assert time.monotonic() - request_at < 10, "requests wait for the pool"
                answers += 1
            assert client.get("/healthz").status_code == httpx.codes.OK
            time.sleep(0.5)
        server.start()
        eventually(lambda: client.get("/api/v1/runs/").status_code == httpx.codes.OK, 30)
        again = [client.get("/api/v1/runs/").status_code for _ in range(10)]
        assert again == [httpx.codes.OK] * 10
    for one in (run, ends_meanwhile):
        assert runs.wait_for(hub, one)["state"] == "Completed"
        assert runs.log(hub, one) == runs.node_log(hub, one)
    assert runs.wait_for(hub, runs.submit(hub, "print('later')"))["state"] == "Completed"


def test_a_database_that_is_back_is_not_taken_for_away_again(hub: Hub, server: PostgresServer) -> None:
    with hub.client() as client:
        for _ in range(4):
            server.stop()
            eventually(lambda: client.get("/api/v1/runs/").status_code == httpx.codes.SERVICE_UNAVAILABLE, 30)
            server.start()
            eventually(lambda: client.get("/api/v1/runs/").status_code == httpx.codes.OK, 30)
            # Until each thread of the web server has used the connection that it kept.
            until = time.monotonic() + 2.5
            while time.monotonic() < until:
                assert client.get("/api/v1/runs/").status_code == httpx.codes.OK
                time.sleep(0.1)


def test_a_read_only_database_is_named_and_can_be_read(hub: Hub, server: PostgresServer) -> None:
    run = runs.submit(hub, COUNTS.format(lines=100))
    runs.wait_for(hub, run, "Running")
    server.set("default_transaction_read_only", "on")
    server.end_connections()
    try:
        wait_for_status(hub, httpx.codes.OK)
        with hub.client() as client:
            refused = client.post(f"/api/v1/runs/{run}/cancel/")
            assert refused.status_code == httpx.codes.SERVICE_UNAVAILABLE, refused.text
            assert "accepts no changes" in refused.text
    finally:
        server.set("default_transaction_read_only", "off")
        server.end_connections()
    wait_for_status(hub, httpx.codes.OK)
    assert runs.wait_for(hub, run)["state"] == "Completed"
    assert runs.log(hub, run) == runs.node_log(hub, run)


def test_a_hub_goes_on_when_the_database_has_no_connection_left(hub: Hub, server: PostgresServer) -> None:
    run = runs.submit(hub, COUNTS.format(lines=100))
    runs.wait_for(hub, run, "Running")
    others = server.take_all_connections()
    try:
        server.end_connections(others)
        others += server.take_all_connections()
        wait_for_status(hub, httpx.codes.SERVICE_UNAVAILABLE)
    finally:
        for other in others:
            other.close()
    wait_for_status(hub, httpx.codes.OK)
    assert runs.wait_for(hub, run)["state"] == "Completed"


def test_a_hub_that_is_too_old_for_its_database_says_which_it_needs(
    server: PostgresServer, tmp_path: Path
) -> None:
    hub = Hub(tmp_path / "data", DATABASE_URL=server.new_database("newer"))
    hub.manage("migrate", "--verbosity", "0")
    with psycopg.connect(hub.settings["DATABASE_URL"]) as connection:
        connection.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('jobs', '9999_later', now())"
        )
        connection.execute("UPDATE trainhub_hubrelease SET version = '9.1', oldest_version = '9.0'")
    refused = hub.manage("up", check=False)
    assert refused.returncode == 1
    assert "migrated by TrainHub 9.1 (jobs.9999_later)" in refused.stderr
    assert "Install 9.0 or newer, or restore the backup" in refused.stderr


def test_a_start_without_the_database_says_why(tmp_path: Path) -> None:
    hub = Hub(tmp_path / "data", DATABASE_URL="postgres://hub@127.0.0.1:1/none")
    refused = hub.manage("up", check=False)
    assert refused.returncode == 1
    assert "the database of DATABASE_URL cannot be reached" in refused.stderr
    assert "refused" in refused.stderr


def test_a_broken_migration_is_named_and_started_again(server: PostgresServer, tmp_path: Path) -> None:
    hub = Hub(tmp_path / "data", DATABASE_URL=server.new_database("broken"))
    hub.data_dir.mkdir()
    with psycopg.connect(hub.settings["DATABASE_URL"]) as connection:
        # Somebody's table is in the way of a migration.
        connection.execute("CREATE TABLE trainhub_hubrelease (id int)")
    refused = hub.manage("up", check=False)
    assert refused.returncode == 1
    assert "The migration trainhub.0002_hub_release failed" in refused.stderr
    assert "All of it was undone" in refused.stderr
    with psycopg.connect(hub.settings["DATABASE_URL"]) as connection:
        connection.execute("DROP TABLE trainhub_hubrelease")
    hub.manage("prepare")
