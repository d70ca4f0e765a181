"""A run is deleted, brought back, and deleted for good: by the API of a hub with its worker."""

from __future__ import annotations

import pytest

from tests.hub import Hub, eventually
from tests.runs import submit, told, wait_for

pytestmark = pytest.mark.slow
LEAVES_A_FILE = (
    "import os\nos.makedirs('outputs', exist_ok=True)\nopen('outputs/model.pt', "
    "'wb').write(os.urandom(100_000))\n"
)


def test_a_run_that_is_deleted_for_good_leaves_its_account_and_nothing_else(hub: Hub) -> None:
    run = submit(hub, LEAVES_A_FILE)
    assert wait_for(hub, run)["state"] == "Completed"
    number = str(told(hub, run)["number"])
    with hub.client() as client:
        [output] = client.get(f"/api/v1/runs/{run}/outputs/").json()["outputs"]
        blob = hub.data_dir / "blobs" / output["sha256"][:2] / output["sha256"]
        assert client.delete(f"/api/v1/runs/{run}/").is_success
        assert client.get(f"/api/v1/runs/{run}/").status_code == 404
        assert client.post(f"/api/v1/runs/{run}/restore/").json()["state"] == "Completed"
        assert client.delete(f"/api/v1/runs/{run}/").is_success
        assert blob.exists()
        assert client.post(f"/api/v1/runs/{run}/purge/").is_success

        def deleted() -> list[str]:
            return [row["id"] for row in client.get("/api/v1/runs/deleted/").json()["results"]]

        eventually(lambda: run not in deleted(), 30, "the worker has purged the run")
        assert not blob.exists()
        assert not (hub.data_dir / "runs" / run).exists()
        lines = {
            line["name"]: line
            for line in client.get("/api/v1/usage/", params={"by": "run"}).json()["results"]
        }
        assert lines[number]["node_hours"] > 0
        assert lines[number]["title"] == ""
