"""A migration that is killed in its middle (kill -9) on a database with data: the next start goes on."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import PROJECT, Hub
from tests.platform.postgres import PostgresServer

pytestmark = pytest.mark.slow
# Applies what is pending, and stays in the middle of the migration that is named: all of its statements were
# made, and nothing is committed.
HALF_WAY = """
import sys, time
import django
django.setup()
from django.core.management import call_command
from django.db.migrations import Migration

apply = Migration.apply

def stay(self, *arguments, **options):
    state = apply(self, *arguments, **options)
    if f"{self.app_label}.{self.name}" == sys.argv[1]:
        print("here", flush=True)
        time.sleep(600)
    return state

Migration.apply = stay
call_command("migrate", interactive=False, verbosity=0)
"""
# The newest migrations that make a table, a column, and rows (by Python), and where to go back to before.
STEPS = [
    ("workspaces.0018_servers", "workspaces", "0017"),
    ("workspaces.0020_server_settings", "workspaces", "0018"),
    ("clusters.0018_slurm_tokens", "clusters", "0017"),
]
FACTS = """
import json
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from workspaces.models import AuditEvent, User
executor = MigrationExecutor(connection)
print(json.dumps({
    "pending": len(executor.migration_plan(executor.loader.graph.leaf_nodes())),
    "people": sorted(User.objects.values_list("username", flat=True)),
    "events": AuditEvent.objects.count(),
}))
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def hub(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hub]:
    """Not started; its database has the tables and the first account."""
    settings = {"SECRET_KEY": "of-tests-only", "SECRETS_KEYRING": str(tmp_path / "keys" / "keyring")}
    if request.param == "postgresql":
        settings["DATABASE_URL"] = request.getfixturevalue("database")
    hub = Hub(tmp_path / "data", **settings)
    (hub.data_dir / "run").mkdir(parents=True)
    hub.manage("prepare")
    yield hub
    hub.stop()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    with PostgresServer() as server:
        yield server.url


def facts(hub: Hub) -> dict[str, object]:
    return dict(json.loads(hub.manage("shell", "--no-imports", "-c", FACTS).stdout.splitlines()[-1]))


def kill_half_way(hub: Hub, migration: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HALF_WAY, migration],
        cwd=PROJECT,
        env={**hub.env, "DJANGO_SETTINGS_MODULE": "trainhub.settings", "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGKILL)
    process.wait(20)


def test_the_next_start_goes_on_where_it_was(hub: Hub) -> None:
    before = facts(hub)
    assert before["pending"] == 0
    for migration, app, number in STEPS:
        hub.manage("migrate", app, number, "--verbosity", "0")
        kill_half_way(hub, migration)
        check = hub.manage("upgrade", "--check", check=False).stdout
        assert migration in check
        hub.manage("migrate", "--verbosity", "0")
        assert facts(hub) == before
    hub.manage("migrate", "workspaces", "0017", "--verbosity", "0")
    kill_half_way(hub, "workspaces.0020_server_settings")
    # What a start runs.
    json.loads(hub.manage("prepare").stdout.splitlines()[-1])
    assert facts(hub) == before
    if "DATABASE_URL" not in hub.settings:
        hub.start()
        assert hub.answers()


def test_the_first_one_may_be_killed_at_any_moment(hub: Hub, tmp_path: Path) -> None:
    """All tables of a new database, by a process that is killed again and again."""
    seed = random.randrange(10**6)  # noqa: S311 - no secrets
    source = random.Random(seed)  # noqa: S311 - no secrets
    new = Hub(tmp_path / "new", **hub.settings)
    if "DATABASE_URL" in hub.settings:
        # A database of its own.
        code = "from django.db import connection; connection.cursor().execute('CREATE DATABASE anew')"
        hub.manage("shell", "--no-imports", "-c", code)
        new.settings["DATABASE_URL"] = f"{hub.settings['DATABASE_URL'].rpartition('/')[0]}/anew"
    (new.data_dir / "run").mkdir(parents=True)
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=PROJECT, env=new.env
        )
        time.sleep(source.uniform(1.0, 6.0))
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    done = new.manage("prepare", check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    state = facts(new)
    assert (state["pending"], state["people"]) == (0, ["admin"]), f"seed {seed}"
