"""What the nodes of a run had installed: on its page, as a file, in the API and in comparisons."""

from __future__ import annotations

import json

import pytest

from environments.models import EnvironmentVersion
from environments.states import IMAGE_KINDS
from jobs.logs import log_store
from jobs.models import Run
from tests.environments.locks import locked
from tests.jobs.builders import both_running, running
from tests.pages.builders import text_of
from tests.people import api_client, client_of, make_viewer
from tracking.comparison.differences.environment import compare_software
from trainhub_launch.log_names import PACKAGES_FILE
from workspaces.access import Principal

LOCK = f"tinylib==1.0 \\\n    --hash=sha256:{'a' * 64}\nmissing==2.0 \\\n    --hash=sha256:{'b' * 64}\n"


def record(*packages: tuple[str, str, str, str], **more: object) -> bytes:
    return json.dumps({"python": "3.11.9", "packages": packages, "is_complete": True, **more}).encode()


def both_reported(who: Principal) -> Run:
    """A run with an own environment on two nodes, of which one has another version than the lock."""
    locked(who, lock=LOCK)
    alpha, beta, run = both_running(who, environment={"name": "mine", "version": "1"})
    conda = ("conda", "libgcc", "14.1", "h1_0")
    alpha.log(run, PACKAGES_FILE, 0, record(("pip", "Tinylib", "1.0", ""), conda))
    beta.log(run, PACKAGES_FILE, 0, record(("pip", "tinylib", "1.1", ""), conda))
    return run


def test_the_page_tells_what_differs_from_the_lock_and_between_nodes(who: Principal) -> None:
    run = both_reported(who)
    client = client_of(make_viewer())

    page = text_of(client, f"/runs/{run.number}/packages/")

    assert "Differences between nodes" in page
    assert page.count("Different from the lock of mine 1") == 2
    assert "Packages on alpha" in page
    assert "Packages on beta" in page
    assert PACKAGES_FILE not in text_of(client, f"/runs/{run.number}/logs/")
    address = f"/runs/{run.number}/packages/requirements.txt"
    assert text_of(client, f"{address}?node=beta").splitlines() == [
        "# Installed on node beta",
        "# Python 3.11.9",
        "# conda: libgcc=14.1=h1_0",
        "tinylib==1.1",
    ]
    assert client.get(f"{address}?node=gamma").status_code == 404


@pytest.mark.parametrize("kind", IMAGE_KINDS)
def test_an_image_has_no_packages_to_compare_with(who: Principal, kind: str) -> None:
    run = both_reported(who)
    EnvironmentVersion.objects.update(kind=kind)
    page = text_of(client_of(make_viewer()), f"/runs/{run.number}/packages/")
    assert "Packages on alpha" in page
    assert "the lock of mine" not in page


def test_the_api_and_comparisons_have_it(who: Principal) -> None:
    run = both_reported(who)

    answer = api_client(make_viewer()).get(f"/api/v1/runs/{run.number}/packages/").json()

    alpha, beta = answer["nodes"]
    assert (alpha["node"], alpha["python"], alpha["is_complete"]) == ("alpha", "3.11.9", True)
    assert alpha["packages"][1] == {"name": "tinylib", "version": "1.0", "build": "", "installer": "pip"}
    libgcc = {"name": "libgcc", "locked": "", "installed": "14.1 h1_0"}
    missing = {"name": "missing", "locked": "2.0", "installed": ""}
    assert alpha["lock_differences"] == [libgcc, missing]
    assert {"name": "tinylib", "locked": "1.0", "installed": "1.1"} in beta["lock_differences"]
    assert answer["node_differences"] == [{"name": "tinylib", "versions": {"alpha": "1.0", "beta": "1.1"}}]
    rows = {row.name: row.cells[0].text for row in compare_software([run, run]).packages.rows}
    assert (rows["tinylib"], rows["libgcc"]) == ("1.0", "14.1")


def test_what_a_run_wrote_into_the_list_is_not_trusted(who: Principal) -> None:
    alpha, run = running(who)
    packages = [["pip", "good", "1", ""], ["pip", "bad name", "1", ""], ["sudo", "x", "1", ""], ["pip"], 7]
    alpha.log(run, PACKAGES_FILE, 0, record(*packages, python=["3"]))  # type: ignore[arg-type]
    api = api_client(make_viewer())

    (node,) = api.get(f"/api/v1/runs/{run.number}/packages/").json()["nodes"]

    assert ([item["name"] for item in node["packages"]], node["python"]) == (["good"], "")
    path = log_store.path(run.pk, 1, PACKAGES_FILE)
    for content in (b'{"packages": [["pip", "g', b"[]", b"[" * 100_000, b"\xff"):
        path.write_bytes(content)
        assert api.get(f"/api/v1/runs/{run.number}/packages/").json()["nodes"][0]["packages"] is None


def test_a_node_that_sends_none_is_named(who: Principal) -> None:
    _, run = running(who)
    client = client_of(make_viewer())

    assert "Node alpha has not sent the list" in text_of(client, f"/runs/{run.number}/packages/")

    Run.objects.filter(pk=run.pk).update(state="Completed")
    page = text_of(client, f"/runs/{run.number}/packages/")
    assert "Node alpha sent no list of packages" in page
    assert "agent there is of an earlier version" in page
