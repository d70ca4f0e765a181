"""A secret from its page to a rank and a webhook, and a search for it everywhere else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.hub import Hub, eventually
from tests.journeys.runs import Runs
from tests.signing_in import page_client, sign_in
from tests.workspaces.notifications.receiver import Receiver
from trainhub_node import proc

pytestmark = [pytest.mark.slow, pytest.mark.browser]
VALUE = "hf_not-for-your-eyes-4711"
STARS = "*" * len(VALUE)
SCRIPT = """
import hashlib, os, time
print("digest", hashlib.sha256(os.environ["HF_TOKEN"].encode()).hexdigest())
print("shown", os.environ["HF_TOKEN"], flush=True)
while not os.path.exists("go"):
    time.sleep(0.05)
raise SystemExit(f"with {os.environ['HF_TOKEN']}")
"""


@pytest.fixture
def hub(own_hub: Hub) -> Hub:
    own_hub.settings["WEBHOOK_HOSTS"] = "127.0.0.1"
    return own_hub.start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    instance = Receiver()
    yield instance
    instance.stop()


@pytest.fixture
def tab(browser: Any, hub: Hub) -> Iterator[Any]:
    context = browser.new_context(base_url=hub.browser_url, storage_state=sign_in(browser, hub))
    yield context.new_page()
    context.close()


def test_a_secret_reaches_the_rank_and_the_webhook_and_nothing_else(
    hub: Hub, tab: Any, receiver: Receiver, tmp_path: Path
) -> None:
    store_secret(tab)
    add_webhook(tab, receiver.url)
    run = submit(tab, hub, tmp_path)
    runs = Runs(hub)
    log = runs.says(run, b"shown ").decode()
    assert f"digest {hashlib.sha256(VALUE.encode()).hexdigest()}" in log
    assert f"shown {STARS}" in log
    while_it_runs = places(hub)
    rank = runs.members(run)[0]["pid"]
    assert processes() == {rank}

    (runs.file_on_node(run).parent.parent / "work" / "go").touch()
    assert runs.ended(run)["state"] == "Failed"
    got = eventually(lambda: receiver.got, 30, "the webhook is called")
    assert got[0].path == f"/hook/{VALUE}"

    assert while_it_runs == []
    assert places(hub) == []
    assert processes() == set()
    assert shown_by_pages(tab, hub, run) == []
    assert used_by(tab) == {"run", "webhook"}


def store_secret(tab: Any) -> None:
    tab.goto("/settings/")
    tab.locator("#secrets").get_by_role("link", name="Secrets").click()
    tab.get_by_label("Name").fill("hf-token")
    tab.get_by_label("Value").fill(VALUE)
    tab.get_by_role("button", name="Store").click()
    tab.get_by_text("The secret hf-token is stored.").wait_for()


def add_webhook(tab: Any, url: str) -> None:
    tab.goto("/settings/notifications/add/own/")
    tab.get_by_label("Name").fill("ours")
    tab.get_by_label("Address").fill(f"{url.rstrip('/')}/{{secret:hf-token}}")
    tab.get_by_role("button", name="Save").click()
    tab.wait_for_url("**/settings/notifications/")


def submit(tab: Any, hub: Hub, folder: Path) -> str:
    """Through the wizard: a folder of one script, and the secret chosen for a variable. Returns the run's
    id."""
    (folder / "code").mkdir()
    (folder / "code" / "main.py").write_text(SCRIPT)
    tab.goto("/runs/new/")
    tab.set_input_files("[data-role=folder]", folder / "code")
    tab.wait_for_url("**/source/")
    tab.goto(tab.url.replace("/source/", "/environment/"))
    row = tab.locator(".wz-row").first
    row.get_by_label("Name of variable 1").fill("HF_TOKEN")
    row.get_by_label("Kind of variable 1").select_option("secret")
    row.get_by_label("Secret of variable 1").select_option("hf-token")
    tab.locator(".wz-buttons button[value=next]").click()
    tab.get_by_role("heading", name="Review and submit").wait_for()
    tab.get_by_text("secret hf-token").first.wait_for()
    tab.get_by_role("button", name="Submit the run").click()
    tab.wait_for_url(re.compile(r"/runs/\d+/$"))
    with hub.client() as client:
        return str(client.get("/api/v1/runs/").json()["results"][0]["id"])


def places(hub: Hub) -> list[str]:
    """Every file of the hub and of its node, and every key of the broker, that contains the value."""
    files = [
        str(path)
        for path in (*hub.data_dir.rglob("*"), hub.console)
        if path.is_file() and not path.is_symlink() and VALUE.encode() in path.read_bytes()
    ]
    with redis.Redis.from_url(services(hub)["redis_url"]) as broker:
        keys = [key for key in broker.scan_iter() if VALUE.encode() in (broker.dump(key) or b"")]
    return [*files, *map(repr, keys)]


def services(hub: Hub) -> dict[str, str]:
    return dict(json.loads((hub.own_folder / "run" / "services.json").read_text()))


def processes() -> set[int]:
    """Every process of this machine with the value among its arguments or in its environment."""
    return {
        int(path.name)
        for path in Path("/proc").glob("[0-9]*")
        for name in ("cmdline", "environ")
        if VALUE.encode() in (proc.read(str(path / name)) or b"")
    }


def shown_by_pages(tab: Any, hub: Hub, run: str) -> list[str]:
    """Every page and every answer of the API about the run, the secret or the webhook that shows the
    value."""
    tab.goto(f"/runs/id/{run}/")
    base = tab.url.replace(hub.browser_url, "")
    pages = [base, *(f"{base}{part}/" for part in ("logs", "plan", "events", "outputs"))]
    pages += ["/settings/", "/settings/secrets/", "/settings/notifications/", "/audit/", "/runs/"]
    parts = ("", "events/", "members/", "logs/70_driver_log.txt")
    with hub.client() as client:
        answers = {path: client.get(path).text for path in (f"/api/v1/runs/{run}/{part}" for part in parts)}
    person = page_client(hub)
    texts = {path: person.get(path).text for path in pages} | answers
    return [path for path, text in texts.items() if VALUE in text]


def used_by(tab: Any) -> set[str]:
    tab.goto("/settings/secrets/")
    tab.get_by_role("link", name="hf-token").click()
    rows = tab.locator("tbody tr td:first-child").all_inner_texts()
    return {row.split()[0] for row in rows}
