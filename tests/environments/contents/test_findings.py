"""What is said about the packages of an environment before a run is launched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from clusters.models import Node
from clusters.offers import offers
from environments.models import EnvironmentVersion
from jobs.environment_findings.all_findings import package_findings
from jobs.models import Snapshot
from jobs.scheduling.run_preview import preview
from jobs.sources.examples import example, examples
from tests.environments.locks import locked
from tests.jobs.builders import node, snapshot
from tests.people import api_client, client_of, make_viewer, principal_of
from tests.wizard.builders import preview as wizard_preview
from tests.wizard.builders import with_code
from trainhub_launch.findings import Finding
from trainhub_launch.spec import RunSpec
from trainhub_launch.spec_reader import read_spec
from workspaces.access import Principal

PYTORCH = "TrainHub-PyTorch-2.13"
MPI = {"type": "mpi", "process_count_per_node": 1}


@pytest.fixture(autouse=True)
def alpha(db: None) -> Node:
    return node("alpha", gpus=2)


def lock_of(**versions: str) -> str:
    return "".join(f"{name.replace('_', '-')}=={version}\n" for name, version in versions.items())


def own(who: Principal, python: str = "3.11", source: str = "torch", **versions: str) -> str:
    locked(who, "mine", source, python=python, lock=lock_of(**versions))
    return "mine"


def spec_of(who: Principal, files: str | Mapping[str, str], environment: str, **changes: Any) -> RunSpec:
    files = {"train.py": files} if isinstance(files, str) else files
    source = {"type": "snapshot", "id": snapshot(who, files).sha256}
    data = {"source": source, "script": "train.py", "environment": {"name": environment}}
    return read_spec({**data, "resources": {"cluster": "local"}, **changes})


def findings(
    who: Principal, files: str | Mapping[str, str], environment: str, **changes: Any
) -> list[Finding]:
    """Those of the whole preview that concern packages."""
    spec = spec_of(who, files, environment, **changes)
    return [item for item in preview(spec, who).findings if item.field == "environment.name"]


def messages(found: list[Finding]) -> list[str]:
    return [item.message for item in found]


class TestExamples:
    @pytest.mark.parametrize("name", [item.name for item in examples()])
    def test_none_in_its_proper_environment(self, who: Principal, alpha: Node, name: str) -> None:
        spec = read_spec(example(name).spec)
        assert list(package_findings(spec, who, offers(alpha.cluster))) == []

    def test_a_changed_one_has_one(self, who: Principal) -> None:
        text = (example("digits-ddp").folder / "train.py").read_text()
        found = findings(who, text.replace("import torch\n", "import torch\nimport timm\n", 1), PYTORCH)
        assert messages(found) == [
            f"train.py (line 23) imports timm, which {PYTORCH} lacks; make a version of it with timm"
        ]
        assert (found[0].level, found[0].action) == ("warning", "Add timm")
        page = client_of(who.user).get(found[0].link).content.decode()
        assert "torch==2.13.0" in page
        assert "\ntimm</textarea>" in page
        assert 'value="pytorch-2.13"' in page

    @pytest.mark.parametrize("name", ["horovod", "deepspeed"])
    def test_what_has_no_wheel_is_added_for_a_node_to_build(self, who: Principal, name: str) -> None:
        text = (example(f"{name}-digits").folder / "train.py").read_text()
        finding = findings(who, text, PYTORCH, distribution=MPI)[0]
        assert finding.message.endswith(f"make a version of it with {name}, which a node builds once")
        page = client_of(who.user).get(finding.link).content.decode()
        assert f"\n{name}</textarea>" in page


class TestMissingModules:
    def test_says_which_distributions_have_them_and_links_to_the_next_version(self, who: Principal) -> None:
        environment = own(who, torch="2.13.0", numpy="2.1.0", mlflow="3.17.0")
        files = {
            "train.py": "import torch, cv2\nimport model",
            "model.py": "\nimport pandas\nimport numpy.linalg",
        }
        (finding,) = findings(who, files, environment)
        assert finding.message == (
            "train.py (line 1) imports cv2 and model.py (line 2) imports pandas, which mine 1 lacks (cv2 is "
            "in opencv-python-headless); make a version of it with opencv-python-headless and pandas"
        )
        page = client_of(who.user).get(finding.link).content.decode()
        assert "torch\nopencv-python-headless\npandas</textarea>" in page

    def test_nothing_is_said_of_what_may_come_from_a_distribution_that_nobody_knows(
        self, who: Principal
    ) -> None:
        environment = own(who, torch="2.13.0", mlflow="3.17.0", acme_opencv="1.0")
        assert findings(who, "import torch, acmelib, cv2, _acme", environment) == []
        environment = own(who, torch="2.13.0", mlflow="3.17.0")
        (finding,) = findings(who, "import torch, acmelib", environment)
        assert (finding.level, "probably provided by acmelib" in finding.message) == ("hint", True)

    @pytest.mark.parametrize(
        "changes",
        [
            {"environment_variables": {"PYTHONPATH": "/opt/libs"}},
            {"script": "", "command": ["bash", "run.sh"]},
            {"script": "", "command": ["mpirun", "-np", "2", "python", "train.py"]},
            {"script": "", "command": ["/usr/bin/python3", "train.py"]},
        ],
    )
    def test_nothing_is_said_if_the_modules_may_come_from_elsewhere(
        self, who: Principal, changes: dict[str, Any]
    ) -> None:
        assert findings(who, "import pandas", own(who, torch="2.13.0"), **changes) == []

    def test_a_launcher_of_the_environment_runs_its_modules(self, who: Principal) -> None:
        command = {"script": "", "command": ["torchrun", "--nproc_per_node", "2", "train.py"]}
        assert len(findings(who, "import pandas", own(who, torch="2.13.0"), **command)) == 1

    def test_a_module_that_python_no_longer_has(self, who: Principal) -> None:
        environment = own(who, python="3.12", torch="2.13.0")
        spec = spec_of(who, "import imp", environment)
        (finding,) = package_findings(spec, who, [])
        assert "which Python 3.12 no longer has" in finding.message
        page = client_of(who.user).get(finding.link).content.decode()
        assert 'name="python" value="3.11"' in page

    def test_the_interpreter_of_a_node_is_not_judged(self, who: Principal) -> None:
        assert findings(who, "import pandas", "system") == []

    def test_each_script_of_a_snapshot_is_scanned_once(
        self, who: Principal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        environment = own(who, torch="2.13.0")
        first = findings(who, "import pandas", environment)
        monkeypatch.setattr("jobs.environment_findings.source_scans.scan_source", None)
        assert findings(who, "import pandas", environment) == first
        assert [list(row.scans) for row in Snapshot.objects.all()] == [["1:train.py"]]

    def test_a_project_gets_no_link_because_its_own_files_are_changed(self, who: Principal) -> None:
        environment = own(who, torch="2.13.0")
        EnvironmentVersion.objects.update(source='[project]\nname = "p"\ndependencies = ["torch==2.13.0"]\n')
        (finding,) = package_findings(spec_of(who, "import pandas", environment), who, [])
        assert (finding.link, finding.action) == ("", "")

    def test_who_may_not_make_a_version_gets_no_link(self, who: Principal) -> None:
        spec = spec_of(who, "import pandas", own(who, torch="2.13.0"))
        viewer = principal_of(make_viewer())
        (finding,) = package_findings(spec, viewer, [])
        assert (finding.link, finding.action) == ("", "")
        assert "choose an environment that has pandas" in finding.message
        (finding,) = findings(viewer, "import torch, mlflow, deepspeed", PYTORCH)
        assert finding.link == ""
        assert "choose TrainHub-DeepSpeed-0.19, which has it" in finding.message


class TestBuildsForGpus:
    def test_a_driver_that_is_too_old(self, who: Principal, alpha: Node) -> None:
        Node.objects.filter(pk=alpha.pk).update(driver="535.104.05")
        environment = own(who, torch="2.13.0", nvidia_cuda_runtime="13.0.96")
        gpus = {"resources": {"cluster": "local", "gpus_per_node": 1}}
        (message,) = messages(findings(who, "import torch  # mlflow", environment, **gpus))
        assert message == (
            "torch 2.13.0 is built for CUDA 13.0, which needs NVIDIA's driver 580 or newer, and alpha has "
            "535.104.05; choose an environment with a build for CUDA 12 or older, or have the driver updated"
        )
        assert findings(who, "import torch  # mlflow", environment) == []
        Node.objects.filter(pk=alpha.pk).update(driver="580.65.06")
        assert findings(who, "import torch  # mlflow", environment, **gpus) == []

    def test_a_build_for_cpus(self, who: Principal) -> None:
        environment = own(who, torch="2.13.0+cpu")
        gpus = {"resources": {"cluster": "local", "gpus_per_node": 1}}
        (message,) = messages(findings(who, "import torch  # mlflow", environment, **gpus))
        assert message.startswith("torch 2.13.0+cpu is a build for CPUs")
        assert findings(who, "import json", environment, **gpus) == []


class TestCompanions:
    @pytest.mark.parametrize(("module", "word"), [("deepspeed", "fails"), ("lightning", "alone")])
    def test_mpi4py_in_an_mpi_run(self, who: Principal, module: str, word: str) -> None:
        environment = own(who, torch="2.13.0", deepspeed="0.19.8", lightning="2.6.0", mlflow="3.17.0")
        (finding,) = findings(who, f"import {module}", environment, distribution=MPI)
        assert word in finding.message
        assert finding.link.endswith("add=mpi4py")
        assert findings(who, f"import {module}", environment) == []

    def test_nothing_that_logs(self, who: Principal) -> None:
        environment = own(who, torch="2.13.0")
        (finding,) = findings(who, "import torch", environment)
        assert (finding.level, finding.action) == ("hint", "Add mlflow-skinny")
        for text in ("import torch  # MLFLOW_TRACKING_URI", "import json"):
            assert findings(who, text, environment) == []
        assert findings(who, "import torch", own(who, torch="2.13.0", tensorboard="2.21.0")) == []

    def test_a_package_that_is_named_twice(self, who: Principal) -> None:
        environment = own(who, source="torch\nnumpy\nnumpy<3", torch="2.13.0", numpy="2.1.0")
        (message,) = messages(findings(who, "import json", environment))
        assert message == "lines 2 and 3 of the requirements of mine 1 both name numpy; keep one"


def test_the_dry_run_of_the_api_returns_them(who: Principal) -> None:
    spec = spec_of(who, "import pandas", own(who, torch="2.13.0"))
    answer = api_client(who.user).post("/api/v1/runs/preview/", spec.to_json(), "application/json").json()
    assert answer["ok"] is True
    (finding,) = [item for item in answer["findings"] if item["field"] == "environment.name"]
    assert (finding["level"], finding["action"]) == ("warning", "Add pandas")
    assert finding["link"] == "/environments/mine/edit/?from=1&add=pandas"


def test_the_wizard_shows_them_with_the_button(who: Principal) -> None:
    own(who, torch="2.13.0")
    source = f"snapshot:{snapshot(who, {'train.py': 'import pandas'}).sha256}"
    draft = with_code(who, source=source)
    page = wizard_preview(client_of(who.user), draft, "environment", environment="mine:1")
    assert "imports pandas, which mine 1 lacks" in page
    assert 'href="/environments/mine/edit/?from=1&amp;add=pandas">Add pandas</a>' in page
    review = client_of(who.user).get(f"/runs/new/{draft.pk}/review/").content.decode()
    assert ">Add pandas</a>" in review
