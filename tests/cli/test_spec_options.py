"""What becomes of the options of `submit`: the fields of the spec."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import CommandLine
from tests.sdk.scripted_hub import Reply, Request, ScriptedHub
from trainhub_cli.spec_options import words_to_spec
from trainhub_sdk.errors import TrainHubError
from trainhub_sdk.spec_fields import check_fields, set_field

OPTIONS = """
--name n --experiment e --cluster c --gpus 2 --nodes 3 --env torch@4 --input birds=birds@3 --input b=c
-e A=1 -e HERE --secret TOKEN --secret S=other --tag t=1 --set limits.retries=2
"""


@pytest.mark.parametrize(
    ("line", "spec"),
    [
        ("python train.py --epochs 3", {"script": "train.py", "arguments": ["--epochs", "3"]}),
        ("python3.11 ./a/train.py", {"script": "a/train.py", "arguments": []}),
        ("python -m pkg.train", {"command": ["python", "-m", "pkg.train"]}),
        ("python -u train.py", {"command": ["python", "-u", "train.py"]}),
        (
            "torchrun --nproc-per-node 2 train.py",
            {"command": ["torchrun", "--nproc-per-node", "2", "train.py"]},
        ),
        ("./run.sh", {"command": ["./run.sh"]}),
    ],
)
def test_a_command_line_is_a_script_or_a_command(line: str, spec: dict[str, Any]) -> None:
    assert words_to_spec(line.split()) == spec


@pytest.mark.parametrize(
    ("assignment", "spec"),
    [
        ("resources.gpus_per_node=2", {"resources": {"gpus_per_node": 2}, "tags": {"a": "b"}}),
        ("display_name=my run", {"display_name": "my run", "tags": {"a": "b"}}),
        ("arguments=[1, 2]", {"arguments": [1, 2], "tags": {"a": "b"}}),
        ("tags.a.b=c", {"tags": {"a": "b", "a.b": "c"}}),
        ("distribution=null", {"distribution": None, "tags": {"a": "b"}}),
        ("environment_variables.A=x=y", {"environment_variables": {"A": "x=y"}, "tags": {"a": "b"}}),
    ],
)
def test_any_field_can_be_set(assignment: str, spec: dict[str, Any]) -> None:
    data: dict[str, Any] = {"tags": {"a": "b"}}
    set_field(data, assignment)
    assert data == spec


@pytest.mark.parametrize("options", ["--gpus all", "--set resources.gpus_per_node=all"])
def test_all_gpus_of_each_node(hub: ScriptedHub, trainhub: CommandLine, tmp_path: Path, options: str) -> None:
    assert trainhub("submit", "--folder", str(tmp_path), *options.split(), "--", "python", "a.py").code == 0
    assert submitted(hub)["resources"] == {"gpus_per_node": "all"}
    refused = trainhub("submit", "--gpus", "some", "--", "python", "a.py")
    assert (refused.code, "give 0 or more, or all" in refused.err) == (2, True)


@pytest.mark.parametrize("assignment", ["resources", "=1", "resources.=1", ".a=1"])
def test_an_assignment_needs_both_sides(assignment: str) -> None:
    with pytest.raises(TrainHubError, match="FIELD=VALUE"):
        set_field({}, assignment)


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ({"resources": {"gpu_per_node": 1}}, "resources.gpus_per_node is meant"),
        ({"argument": []}, "arguments is meant"),
        ({"limits": {"retires": 1}}, "limits.retries is meant"),
    ],
)
def test_a_misspelt_field_says_which_is_meant(spec: dict[str, Any], meant: str) -> None:
    with pytest.raises(TrainHubError, match=meant):
        check_fields(spec)


def test_what_only_a_newer_hub_knows_is_left_to_it() -> None:
    check_fields({"quantum": 1, "resources": {"tpus_per_pod": 1}, "environment_variables": {"scripd": "x"}})


@pytest.fixture
def hub(scripted: tuple[ScriptedHub, str]) -> ScriptedHub:
    """Takes any source and any spec."""

    def reply(request: Request) -> Reply:
        if request.path == "/api/v1/snapshots/":
            return Reply(201, b'{"id": "s1"}')
        return Reply(
            201, json.dumps({"number": 7, "id": "f" * 32, "spec": json.loads(request.body)}).encode()
        )

    scripted[0].replies = [reply]
    return scripted[0]


def submitted(hub: ScriptedHub) -> dict[str, Any]:
    return dict(json.loads(hub.requests[-1].body))


def test_the_options_become_the_spec(
    hub: ScriptedHub, trainhub: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("")
    monkeypatch.setenv("HERE", "x")
    options = shlex.split(OPTIONS)
    result = trainhub("submit", "--folder", str(tmp_path), *options, "--", "python", "train.py", "--", "-x")
    assert (result.code, result.err) == (0, "")
    assert "Run 7: http://127.0.0.1:" in result.out
    assert submitted(hub) == {
        "script": "train.py",
        "arguments": ["--", "-x"],
        "display_name": "n",
        "experiment": "e",
        "resources": {"cluster": "c", "gpus_per_node": 2, "node_count": 3},
        "environment": {"name": "torch", "version": "4"},
        "inputs": {"birds": {"dataset": "birds", "version": 3}, "b": {"dataset": "c"}},
        "environment_variables": {
            "A": "1",
            "HERE": "x",
            "TOKEN": {"secret": "TOKEN"},
            "S": {"secret": "other"},
        },
        "tags": {"t": "1"},
        "limits": {"retries": 2},
        "source": {"type": "snapshot", "id": "s1"},
    }
    assert hub.requests[-1].headers["idempotency-key"]


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_file_names_its_folder_and_options_change_it(
    hub: ScriptedHub, trainhub: CommandLine, tmp_path: Path, suffix: str
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/a.py").write_text("")
    spec = {
        "source": {"type": "local", "path": "./code"},
        "script": "a.py",
        "distribution": {"type": "mpi", "node_count": 1},
    }
    file = tmp_path / f"spec.{suffix}"
    file.write_text(json.dumps(spec))  # every JSON is YAML too
    assert trainhub("submit", str(file), "--nodes", "2", "--json").code == 0
    assert submitted(hub)["source"] == {"type": "snapshot", "id": "s1"}
    assert submitted(hub)["distribution"] == {"type": "mpi", "node_count": 2}
    assert submitted(hub)["script"] == "a.py"


def test_a_source_of_the_hub_needs_no_folder(hub: ScriptedHub, trainhub: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "example.json"
    file.write_text(
        '{"title": "Hello", "spec": {"source": {"type": "example", "name": "hello"}, "script": "a.py"}}'
    )
    assert trainhub("submit", str(file)).code == 0
    assert [request.path for request in hub.requests] == ["/api/v1/runs/"]
    assert submitted(hub)["source"] == {"type": "example", "name": "hello"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "spec.json is not JSON"),
        ("[]", "must hold a JSON object"),
        ('{"source": {"type": "local", "path": ""}}', "source.path: name the folder"),
        ('{"source": {"type": "local", "paht": "x"}}', "source.paht: a local source has"),
        ('{"source": {"type": "local", "path": "none"}}', "none is not a folder"),
        ('{"scirpt": "a.py"}', "scirpt: there is no such field of a spec; script is meant?"),
    ],
)
def test_what_is_wrong_with_a_file(trainhub: CommandLine, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "spec.json").write_text(text)
    result = trainhub("submit", str(tmp_path / "spec.json"))
    assert result.code == 2
    assert message in result.err
    assert result.out == ""


def test_neither_file_nor_command(trainhub: CommandLine) -> None:
    result = trainhub("submit")
    assert result.code == 2
    assert "trainhub submit -- python train.py" in result.err
