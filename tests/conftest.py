"""Fixtures that start real parts, each only for the tests that ask for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import redis
from channels.layers import channel_layers
from django.conf import settings
from django.contrib.contenttypes.management import create_contenttypes
from django.db.models.signals import post_migrate

from tests import migrated, openmpi
from tests.harness import guard
from tests.harness.flaky import pytest_terminal_summary  # noqa: F401 - a hook
from tests.harness.garbage import pytest_collection_finish  # noqa: F401 - a hook
from tests.hub import PROJECT, Hub
from tests.people import contributor, owner, stranger, viewer, workspace  # noqa: F401 - fixtures
from tests.signing_in import sign_in
from tests.stores.fixtures import s3_server  # noqa: F401 - a fixture
from tests.violations import WatchedBrowser
from trainhub.up import valkey as embedded
from trainhub.up.children import end_with_parent
from workspaces import process_caches

# A busy machine is no fault: what is slow is measured in bench/.
hypothesis.settings.register_profile(
    "any-speed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any-speed")


def pytest_configure(config: pytest.Config) -> None:
    # One guard for the whole run: processes of xdist are started by this one and carry its mark.
    if not hasattr(config, "workerinput"):
        guard.start()
    # Django's plugin has loaded the settings by now, and with them made these folders.
    if settings.configured:
        runtime = embedded.runtime_folder(settings.DATA_DIR)
        guard.own_folder(settings.DATA_DIR)
        guard.on_exit("rm", "-rf", str(settings.DATA_DIR), str(runtime))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest first, so that no process waits for it in the end. Browser tests last: Playwright's
    loop stays in its thread, where async tests want their own and Django allows no queries. A file stays
    together, as whole files are given to processes.

    One file that needs the environment of the frameworks comes first, the others after the slow ones that do
    not: on a new machine one process makes it for one or two minutes, and the others need not wait."""
    with_browser = {item.path for item in items if _has("browser", item)}
    with_frameworks = {item.path for item in items if "frameworks_python" in _fixtures(item)}
    maker = next((item.path for item in items if item.path in with_frameworks and _has("hosts", item)), None)
    # The last files of all: the one with the most tests must not be left when the others are done.
    counts = Counter(item.path for item in items if item.path in with_browser)

    def rank(item: pytest.Item) -> tuple[int, ...]:
        is_slow = _has("hosts", item) or _has("slow", item)
        waits = item.path in with_frameworks and item.path != maker
        is_last = item.path in with_browser
        return is_last, not is_slow, waits, item.path != maker, not _has("hosts", item), -counts[item.path]

    items.sort(key=rank)
    if not os.environ.get("TRAINHUB_TEST_LONG"):
        _deselect(config, items, lambda item: _has("long", item))
    if os.environ.get("TRAINHUB_TEST_DATABASE_URL"):
        # Another database concerns those alone that use one.
        _deselect(config, items, lambda item: not _uses_database(item))
    else:
        _deselect(config, items, lambda item: _has("postgresql", item))


def _deselect(
    config: pytest.Config, items: list[pytest.Item], condition: Callable[[pytest.Item], bool]
) -> None:
    config.hook.pytest_deselected(items=[item for item in items if condition(item)])
    items[:] = [item for item in items if not condition(item)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if _has("mpi", item):
        openmpi.require()


def _has(marker: str, item: pytest.Item) -> bool:
    return item.get_closest_marker(marker) is not None


def _uses_database(item: pytest.Item) -> bool:
    return _has("django_db", item) or bool({"db", "transactional_db"} & _fixtures(item))


def _fixtures(item: pytest.Item) -> set[str]:
    return set(getattr(item, "fixturenames", ()))


def pytest_unconfigure(config: pytest.Config) -> None:
    guard.stop()
    if settings.configured:
        shutil.rmtree(settings.DATA_DIR, ignore_errors=True)
        shutil.rmtree(embedded.runtime_folder(settings.DATA_DIR), ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _guarded_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Ranks get a clean environment; those of this run are recognised by its temporary folder in their
    variables."""
    guard.own_folder(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_modify_db_settings: None) -> bool:
    """Whether Django finds a test database. It does, except on PostgreSQL: a copy of the one that hubs of
    tests begin with. Django then only looks whether a migration is missing."""
    # After each test with transactions they would write anew what it has deleted, for a tenth of a second.
    # TrainHub asks neither for permissions of Django nor for content types.
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.disconnect(create_contenttypes)
    database = settings.DATABASES["default"]
    if database["ENGINE"] != "django.db.backends.sqlite3":
        return False
    migrated.copy_migrated(Path(database["TEST"]["NAME"]))
    return True


@pytest.fixture(autouse=True)
def _fresh_process() -> None:
    """Each test meets a hub that has just started: nothing cached for the last test may meet the new rows."""
    process_caches.clear_all()


@pytest.fixture(autouse=True)
def _fresh_channel_layer() -> Iterator[None]:
    """A channel layer belongs to one event loop; every async test has its own."""
    yield
    channel_layers.backends.clear()


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    """What starts a hub or an agent makes its own files private. Files of other tests must not depend on who
    ran before."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[str]:
    """A real private Valkey for this session: the channel layer and broker of the settings. Its URL."""
    settings.DATA_DIR.joinpath("run").mkdir(parents=True, exist_ok=True)
    settings.DATA_DIR.joinpath("valkey").mkdir(exist_ok=True)
    server = embedded.configured(settings.DATA_DIR, password="of-tests-only")
    # Valkey writes its title over its environment, and with it the guard's mark.
    process = subprocess.Popen(
        server.argv,
        stdout=subprocess.DEVNULL,
        preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
    )
    try:
        server.wait()
        yield server.url
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
def valkey(valkey_server: str) -> str:
    """The URL of this session's Valkey, empty: other tests leave wake-ups in the queues of their nodes."""
    with redis.Redis.from_url(valkey_server) as server:
        server.flushall()
    return valkey_server


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """The whole stack, shared by the session: leave it running and make runs of your own in it."""
    running = Hub(tmp_path_factory.mktemp("hub") / "data")
    running.is_recorded = True
    try:
        yield running.start()
        running.cancel_all()
    finally:
        running.stop()


@pytest.fixture
def own_hub(tmp_path: Path) -> Iterator[Hub]:
    """A stack for one test alone, not started yet: for tests that break or stop it."""
    own = Hub(tmp_path / "data")
    try:
        yield own
    finally:
        own.stop()


@pytest.fixture(scope="session")
def frameworks_python() -> str:
    """The interpreter of the cached environment with torch, mpi4py and TensorFlow; built on first use."""
    given = os.environ.get("TRAINHUB_TEST_FRAMEWORKS_PYTHON")
    if given:
        return given
    done = subprocess.run([PROJECT / ".ci" / "frameworks-env"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="session")
def mlflow_python() -> str:
    """The interpreter of the cached environment with the MLflow client and pandas; built on first use."""
    process = subprocess.run([PROJECT / ".ci" / "mlflow-env"], stdout=subprocess.PIPE, text=True, check=True)
    return process.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import expect, sync_playwright

    from tests.harness import chromium

    # As long as Playwright waits for everything else: its 5 s for expectations are too few on a busy machine.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        launched = chromium.launch(playwright)
        yield WatchedBrowser(launched)
        launched.close()


@pytest.fixture(autouse=True)
def _no_policy_violation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails each test in a browser on whose pages the content security policy had to refuse something."""
    if "browser" not in request.fixturenames:
        yield
        return
    watched = request.getfixturevalue("browser")
    yield
    if not isinstance(watched, WatchedBrowser):
        return  # a test client that the module calls its browser
    violations = watched.take_violations()
    assert not violations, "\n".join(violations)


@pytest.fixture(scope="session")
def signed_in(browser: Any, hub: Hub) -> Any:
    """What a browser keeps once the owner of `hub` has signed in."""
    return sign_in(browser, hub)


@pytest.fixture
def page(browser: Any, hub: Hub, signed_in: Any) -> Iterator[Any]:
    """A tab signed in as the owner of `hub`, at 1440 px, with its first page."""
    yield from _tab(browser, hub, signed_in)


@pytest.fixture
def confirmed_page(browser: Any, hub: Hub) -> Iterator[Any]:
    """The same, signed in just now: ten minutes after it, changes of machines, tokens and people ask for the
    password again."""
    yield from _tab(browser, hub, sign_in(browser, hub))


def _tab(browser: Any, hub: Hub, session: Any) -> Iterator[Any]:
    window = {"width": 1440, "height": 900}
    context = browser.new_context(
        base_url=hub.browser_url, viewport=window, accept_downloads=True, storage_state=session
    )
    tab = context.new_page()
    tab.goto("/")
    yield tab
    context.close()
