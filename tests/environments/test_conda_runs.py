"""Runs in conda environments, from the order of the node to the reason why they wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusters.models import Node
from environments import changes
from environments.conda.conda_lock import CondaLock, CondaPackage
from environments.models import EnvironmentVersion
from environments.states import VersionState
from jobs.scheduling.queue_placement import place_queued
from jobs.scheduling.run_preview import preview
from tests.jobs.builders import Played, node, queued, spec
from tests.people import client_of, make_contributor
from trainhub_launch.machine import CONDA, SECRETS
from trainhub_launch.order import EnvironmentSpec
from workspaces.access import Principal

CHANNEL = "https://conda.anaconda.org/conda-forge"
PYTHON = CondaPackage(
    name="python",
    version="3.11.2",
    build="h1_0_cpython",
    build_number=0,
    subdir="linux-64",
    noarch="",
    depends=("__glibc >=2.17",),
    file="python-3.11.2-h1_0_cpython.conda",
    url=f"{CHANNEL}/linux-64/python-3.11.2-h1_0_cpython.conda",
    channel=CHANNEL,
    sha256="b" * 64,
    size=3,
)
LOCK = CondaLock(
    (CHANNEL,), {"__glibc": "2.28"}, (PYTHON,), f"tinylib==1.0 \\\n    --hash=sha256:{'a' * 64}\n"
)
FILE = "dependencies:\n- python=3.11\n- pip: [tinylib]\n"


def locked(who: Principal, lock: CondaLock = LOCK) -> EnvironmentVersion:
    version = changes.create_version(who, "mine", "conda", FILE)
    EnvironmentVersion.objects.filter(pk=version.pk).update(state=VersionState.LOCKED, lock=lock.to_text())
    return version


@pytest.mark.usefixtures("valkey")
class TestRun:
    def test_waits_for_a_node_that_can_make_it(self, who: Principal) -> None:
        locked(who)
        old = node("alpha")
        refused = preview(spec(who, environment={"name": "mine"}), who)
        reason = "alpha cannot make conda environments: upgrade its agent, or install py-rattler"
        assert any(reason in item.message for item in refused.findings), refused.findings
        run = queued(who, environment={"name": "mine"})
        place_queued()
        run.refresh_from_db()
        assert reason in run.sentence
        Node.objects.filter(pk=old.pk).update(capabilities=f"{SECRETS} {CONDA}")
        place_queued()
        order = Played(Node.objects.get(pk=old.pk)).claim(run)
        assert (order.environment.kind, order.environment.python) == ("conda", "")
        (package,) = order.environment.conda["packages"]
        assert (package["url"], package["sha256"]) == (PYTHON.url, PYTHON.sha256)
        assert order.environment.lock == LOCK.pip


class TestPages:
    def test_the_form_and_the_version(self, who: Principal) -> None:
        browser = client_of(make_contributor())
        page = browser.get("/environments/new/?kind=conda").content.decode()
        assert 'aria-current="page">Conda</a>' in page
        assert 'id="python"' not in page
        form = {"name": "mine", "source": "dependencies:\n- python\n- pip:\n  - -e .\n"}
        answer = browser.post("/environments/new/?kind=conda", form)
        assert answer.status_code == 400
        assert "Line 4: -e is not possible here" in answer.content.decode()
        answer = browser.post("/environments/new/?kind=conda", form | {"source": FILE})
        assert answer.status_code == 302
        other = replace(LOCK, packages=(replace(PYTHON, build="h2_0_cpython"),))
        EnvironmentVersion.objects.update(state=VersionState.LOCKED, lock=other.to_text())
        locked(who)
        page = browser.get("/environments/mine/versions/2/?with=1").content.decode()
        assert f'conda, <span class="th-muted th-mono">{CHANNEL}</span>' in page
        assert "3.11.2 h2_0_cpython" in page
        files = {
            name: browser.get(f"/environments/mine/versions/2/{name}")
            for name in ("environment.yml", "conda-lock.json", "explicit.txt", "requirements.lock")
        }
        assert {name: item.status_code for name, item in files.items()} == dict.fromkeys(files, 200)
        assert f"@EXPLICIT\n{PYTHON.url}#sha256:{PYTHON.sha256}\n" in files["explicit.txt"].content.decode()


class TestWire:
    def test_an_order_without_conda_looks_as_before(self) -> None:
        plain = EnvironmentSpec("a", "1", "venv", requirements=("x==1",))
        assert "conda" not in plain.to_json()
        one, other = (
            EnvironmentSpec("a", "1", "conda", conda={"packages": [{"sha256": digit * 64}]}) for digit in "ab"
        )
        assert EnvironmentSpec.from_json(one.to_json()) == one
        assert len({plain.digest, one.digest, other.digest}) == 3


def test_the_api_takes_an_object_like_the_yaml(who: Principal) -> None:
    browser = client_of(make_contributor())
    body = {"name": "mine", "kind": "conda", "conda": {"dependencies": ["python=3.11", {"pip": ["tinylib"]}]}}
    answer = browser.post("/api/v1/environments/", body, "application/json")
    assert answer.status_code == 201, answer.content
    assert answer.json()["source"].startswith("dependencies:\n- python=3.11\n- pip:\n  - tinylib\n")
    answer = browser.post("/api/v1/environments/", body | {"python": "3.11"}, "application/json")
    assert answer.status_code == 400
    answer = browser.post(
        "/api/v1/environments/", body | {"conda": {"dependencies": ["a", 3]}}, "application/json"
    )
    assert answer.json()["errors"][0]["field"] == "conda"
