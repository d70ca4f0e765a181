"""The Helm chart: its values by their schema, what it renders, and, where helm is installed, its lint."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.caching import CACHE
from tests.hub import PROJECT
from trainhub import __version__

CHART = PROJECT / "packaging" / "helm" / "trainhub"
GO_LIBRARIES = "/usr/share/gocode"
Values = dict[str, Any]


def values(**changes: Any) -> Values:
    return {**yaml.safe_load((CHART / "values.yaml").read_text()), **changes}


def check(given: Values) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft7Validator(schema).validate(given)


def test_the_default_values_follow_the_schema_and_the_version_is_that_of_the_hub() -> None:
    check(values())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "https://hub.example.org"},
        {"settings": {"DATABASE_URL": "postgres://in-plain-sight"}},
        {"settings": {"email-from": "x"}},
        {"secrets": {"values": {"REDIS_URL": 3}}},
        {"persistence": {"size": "a lot"}},
        {"replicas": 2},
    ],
)
def test_wrong_values_are_refused(wrong: Values) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check(values(**wrong))


def renderer(folder: Path) -> list[str]:
    """The beginning of a command that takes chart, values and release: helm's engine, from its parts in
    Debian's packages."""
    program = folder / "renderer"
    variables = {
        **os.environ,
        "GO111MODULE": "off",
        "GOPATH": GO_LIBRARIES,
        "GOCACHE": str(CACHE / "go-build"),
        "GOFLAGS": "",
    }
    command = ["go", "build", "-o", str(program), str(Path(__file__).parent / "chart_renderer" / "main.go")]
    subprocess.run(command, env=variables, check=True, timeout=600, cwd=folder)
    return [str(program)]


def render(tmp_path: Path, **changes: Any) -> dict[str, Values]:
    """The objects by their kind."""
    given = values(**changes)
    check(given)
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(given))
    command = [*renderer(tmp_path), str(CHART), str(file), "hub"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {item["kind"]: item for item in yaml.safe_load_all(done.stdout) if item}


@pytest.mark.slow
@pytest.mark.long
class TestRendered:
    @pytest.mark.skipif(not shutil.which("helm"), reason="helm is not installed, and Debian does not have it")
    def test_lint_finds_nothing(self) -> None:
        done = subprocess.run(
            ["helm", "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout

    def test_the_hub_is_confined_and_reached_by_the_ingress(self, tmp_path: Path) -> None:
        made = render(tmp_path, trustedProxies=["10.0.0.7"], settings={"PURGE_DAYS": 7})
        pod = made["StatefulSet"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["image"].endswith(f"trainhub-hub:{__version__}")
        variables = {item["name"]: item["value"] for item in container["env"]}
        assert variables["PUBLIC_URL"] == "https://hub.example.org"
        assert (variables["TRUSTED_PROXIES"], variables["PURGE_DAYS"]) == ("10.0.0.7", "7")
        labels = made["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
        assert made["Service"]["spec"]["selector"].items() <= labels.items()
        (rule,) = made["Ingress"]["spec"]["rules"]
        (path,) = rule["http"]["paths"]
        assert path["backend"]["service"]["name"] == made["Service"]["metadata"]["name"]
        assert made["StatefulSet"]["spec"]["volumeClaimTemplates"]

    def test_secrets_stand_in_no_other_object(self, tmp_path: Path) -> None:
        made = render(tmp_path, secrets={"existing": "", "values": {"DATABASE_URL": "postgres://u:pw@db/x"}})
        assert made["Secret"]["stringData"] == {"DATABASE_URL": "postgres://u:pw@db/x"}
        assert "pw@db" not in json.dumps({kind: item for kind, item in made.items() if kind != "Secret"})

    def test_what_exists_is_used(self, tmp_path: Path) -> None:
        own = {"existing": "mine", "values": {}}
        made = render(
            tmp_path,
            secrets=own,
            persistence={"existingClaim": "disk", "storageClass": "", "size": "1Gi"},
            ingress={"enabled": False},
        )
        assert "Secret" not in made
        assert "Ingress" not in made
        spec = made["StatefulSet"]["spec"]
        assert "volumeClaimTemplates" not in spec
        container = spec["template"]["spec"]["containers"][0]
        assert container["envFrom"] == [{"secretRef": {"name": "mine"}}]
