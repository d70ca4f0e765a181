"""An operator makes a cluster of a real Slurm, by its form and by the API, and looks at its page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clusters.backends.slurm.settings import fingerprint
from tests.hosts.bench import HostsHub
from tests.hub import Hub, eventually
from tests.node.accounts import with_people
from tests.signing_in import sign_in
from tests.slurm.cluster import SlurmCluster
from tests.slurm.login import LoginHost
from tests.slurm.people import STATE_S, Person

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.long]
PATIENCE_MS = 60_000


@pytest.fixture(scope="module")
def operator_hub(slurm: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub with Slurm's commands and people's accounts, in which nobody has set anything up."""
    folder = tmp_path_factory.mktemp("operator-hub")
    people = folder / "people"
    people.mkdir()
    hub = HostsHub(folder / "data", slurm.hub_address, slurm.environment())
    hub.prefix = tuple(with_people(people))
    try:
        yield hub.start()
    finally:
        hub.stop()


def make_cluster(hub: Hub, name: str, **settings: Any) -> Any:
    body = {"name": name, "kind": "slurm", "slurm": {"partition": "main", **settings}}
    with hub.client() as client:
        return client.post("/api/v1/clusters/", json=body)


class TestApi:
    def test_a_partition_that_slurm_lacks_is_refused_with_those_it_has(self, operator_hub: Hub) -> None:
        answer = make_cluster(operator_hub, "wrong", partition="gpus")
        assert answer.status_code == 400
        assert answer.json()["errors"] == [
            {
                "field": "slurm.partition",
                "message": "Slurm has no partition gpus; it has closed, main, short, spare, urgent.",
            }
        ]

    def test_the_test_submits_as_a_person_and_learns_of_accounting(self, operator_hub: Hub) -> None:
        assert make_cluster(operator_hub, "tested").status_code == 201
        with operator_hub.client() as client:
            accounts = "/api/v1/clusters/tested/unix-accounts/"
            assert client.put(accounts, json={"person": "admin", "account": "ada"}).status_code == 200
            answer = client.post("/api/v1/clusters/tested/test/").json()
            assert answer["is_usable"], answer
            sentences = {check["name"]: check["sentence"] for check in answer["checks"]}
            assert sentences["submission"] == "Slurm takes jobs of ada with these settings."
            assert sentences["accounts"] == "The hub can submit as ada."
            assert client.get("/api/v1/clusters/tested/").json()["slurm_status"]["has_accounting"] is True
            settings = {"slurm": {"qos": "no-such-qos"}}
            assert client.patch("/api/v1/clusters/tested/", json=settings).status_code == 200
            refused = client.post("/api/v1/clusters/tested/test/").json()
            failed = {check["name"] for check in refused["checks"] if check["result"] == "error"}
            assert (refused["is_usable"], failed) == (False, {"submission"})


@pytest.mark.browser
def test_a_partition_is_set_up_by_its_form_and_shows_nodes_and_queue(
    operator_hub: Hub, browser: Any, bo: Person
) -> None:
    with _page(operator_hub, browser) as page:
        _set_up(page)
        _look_at_cluster(page, bo)


@pytest.mark.browser
def test_a_login_node_is_set_up_as_the_page_says(operator_hub: Hub, browser: Any, login: LoginHost) -> None:
    with _page(operator_hub, browser) as page:
        _add_with_login_node(page, login)
        _set_up_login_node(page, login)
        page.click("text=Replace the key")
        page.click("dialog >> role=button[name=Replace]")
        page.wait_for_selector("text=The hub has a new key. Enter its line on the login node.")
        page.click("text=Test the settings")
        page.wait_for_selector("#checks >> text=The login node does not accept the hub's key.")
        _set_up_login_node(page, login)


@contextmanager
def _page(hub: Hub, browser: Any) -> Iterator[Any]:
    context = browser.new_context(
        base_url=hub.browser_url,
        viewport={"width": 1440, "height": 900},
        storage_state=sign_in(browser, hub),
        ignore_https_errors=True,
    )
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield context.new_page()
    finally:
        context.close()


def _add_with_login_node(page: Any, login: LoginHost) -> None:
    page.goto("/clusters/add-cluster/")
    page.check("[name=kind][value=slurm]")
    page.fill("[name=name]", "remote")
    page.fill("[name=slurm-partition]", "main")
    page.fill("[name=slurm-command_host]", f"{login.host.user}@{login.host.name}:{login.host.port}")
    page.fill("[name=slurm-login_group]", "team")
    page.click("text=Create the cluster")
    field = page.locator(".th-field", has=page.locator("[name=slurm-host_key]"))
    refusal = field.locator(".th-error").inner_text()
    assert fingerprint(login.host_key_line()) in refusal
    page.fill("[name=slurm-host_key]", refusal.rpartition("enter this line: ")[2])
    page.click("text=Create the cluster")
    page.wait_for_url("**/clusters/remote/edit/")
    page.click("text=Test the settings")
    page.wait_for_selector("#checks >> text=The login node does not accept the hub's key.")


def _set_up_login_node(page: Any, login: LoginHost) -> None:
    with page.expect_download() as download:
        page.click("text=Download trainhub-login")
    wrapper = Path(download.value.path()).read_text()
    login.run_setup(page.locator("#login-setup").inner_text() + "\n", wrapper, "root")
    page.click("text=Test the settings")
    page.wait_for_selector("#checks >> text=lets TrainHub in, and trainhub-login answers.")


def _set_up(page: Any) -> None:
    page.goto("/clusters/add-cluster/")
    page.wait_for_selector("[name=slurm-partition]", state="hidden")
    page.check("[name=kind][value=slurm]")
    page.wait_for_selector("[name=provider]", state="hidden")
    page.fill("[name=name]", "hpc")
    page.fill("[name=slurm-partition]", "gpus")
    page.click("text=Create the cluster")
    field = page.locator(".th-field", has=page.locator("[name=slurm-partition]"))
    assert "Slurm has no partition gpus; it has closed, main" in field.locator(".th-error").inner_text()
    page.fill("[name=slurm-partition]", "main")
    page.click("text=Create the cluster")
    page.wait_for_url("**/clusters/hpc/edit/")
    page.click("text=Test the settings")
    page.wait_for_selector("#checks >> text=Nobody has a Unix account here yet")
    page.fill("[name=person]", "admin")
    page.fill("[name=account] >> nth=0", "ada")
    page.click("text=Add the account")
    page.wait_for_selector("text=Runs of admin are jobs of ada from now on.")
    page.click("text=Test the settings")
    page.wait_for_selector("#checks >> text=Slurm takes jobs of ada with these settings.")


def _look_at_cluster(page: Any, bo: Person) -> None:
    bo.until(bo.submit(gpus_per_node=2), "RUNNING")
    bo.cluster.admin("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=bad DIMM")
    try:
        page.goto("/clusters/hpc/")
        page.wait_for_selector("text=bad DIMM")
        page.wait_for_selector("#others")
        eventually(lambda: "2 of 4" in page.inner_text(".th-slurm-nodes"), STATE_S, "the GPUs of bo")
        assert "idle + drain" in page.inner_text(".th-slurm-nodes")
        assert "bo" in page.inner_text("section[aria-labelledby=others]")
    finally:
        bo.cluster.admin("scontrol", "update", "NodeName=n3", "State=RESUME")
        bo.cluster.wait_for_node("n3", "idle")
