"""The scripts of `commands`, run by bash as people would: what the processes see is what the plan says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.exports import export_spec
from tests import openmpi
from tests.hub import free_port
from tests.jobs.exports.specs import FULL
from tests.wizard.specs import SNAPSHOT
from trainhub_launch.spec_reader import read_spec

SCRIPT = """
import json, os, pathlib, sys
words = ["".join(word) for word in sys.argv[1:]]
name = f"{os.environ.get('RANK', 0)}-{os.getpid()}.json"
pathlib.Path("outputs", name).write_text(json.dumps({"words": words, "env": dict(os.environ)}))
"""
WORDS = ["a b", "it's", 'say "hi"', "$$(id)", "`id`", "naïve ☃", "", "*", "\n", "\\", "#", "--", "\x85"]


def run_node(folder: Path, spec: dict[str, Any], *arguments: str, node: int = 0, **env: str) -> list[Any]:
    """Starts the script of one node, and returns what its processes have written, by rank."""
    (folder / "train.py").write_text(SCRIPT)
    export = export_spec(read_spec({"source": SNAPSHOT, "script": "train.py"} | spec), "commands")
    for name, text in export.files.items():
        (folder / name).write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = {"PATH": path, "HOME": str(folder), "LC_ALL": "C.UTF-8", **env}
    done = subprocess.run(
        ["bash", str(folder / f"node_{node}.sh"), *arguments],
        env=variables,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return [json.loads(path.read_text()) for path in sorted((folder / "outputs").glob("*.json"))]


def test_a_single_process_gets_every_word_as_it_was_written(tmp_path: Path) -> None:
    (process,) = run_node(tmp_path, {"arguments": WORDS})
    assert process["words"] == [word.replace("$$", "$") for word in WORDS]
    env = process["env"]
    assert (env["CUDA_VISIBLE_DEVICES"], env["PYTHONUNBUFFERED"]) == ("", "1")
    assert env["TRAINHUB_CHECKPOINT_DIR"] == f"{tmp_path}/checkpoints"
    assert (tmp_path / "checkpoints").is_dir()


def test_variables_are_those_of_the_spec(tmp_path: Path) -> None:
    variables = FULL["environment_variables"]
    spec = {"environment_variables": variables, "arguments": ["$NUMBER", "${NUMBER}x"]}
    (process,) = run_node(tmp_path, spec, WANDB_API_KEY="the value")
    assert process["words"] == ["1e3", "1e3x"]
    assert process["env"]["NOTE"] == variables["NOTE"]
    assert process["env"]["WANDB_API_KEY"] == "the value"


def test_a_secret_that_is_not_set_ends_it_at_once(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="WANDB_API_KEY: is not set: it is a secret"):
        run_node(tmp_path, {"environment_variables": {"WANDB_API_KEY": {"secret": "wandb"}}})


def test_workers_of_tensorflow_find_each_other(tmp_path: Path) -> None:
    spec = {
        "distribution": {"type": "tensorflow", "worker_count": 4},
        "resources": {"node_count": 2, "gpus_per_node": 4},
    }
    processes = run_node(tmp_path, spec, "10.0.0.1", "10.0.0.2", node=1)
    configs = sorted((json.loads(process["env"]["TF_CONFIG"]) for process in processes), key=str)
    addresses = ["10.0.0.1:6105", "10.0.0.1:6106", "10.0.0.2:6105", "10.0.0.2:6106"]
    assert [config["cluster"] for config in configs] == [{"worker": addresses}] * 2
    assert [config["task"] for config in configs] == [
        {"type": "worker", "index": 2},
        {"type": "worker", "index": 3},
    ]
    assert sorted(process["env"]["CUDA_VISIBLE_DEVICES"] for process in processes) == ["0,1", "2,3"]


def test_parameter_servers_end_with_the_chief(tmp_path: Path) -> None:
    (tmp_path / "wait.py").write_text(
        "import json, os, time\n"
        "if json.loads(os.environ['TF_CONFIG'])['task']['type'] != 'chief':\n"
        "    time.sleep(1000)\n"
    )
    spec = {
        "script": "wait.py",
        "distribution": {"type": "tensorflow", "worker_count": 1, "parameter_server_count": 1},
    }
    assert run_node(tmp_path, spec) == []


def test_a_failure_of_one_process_ends_the_others(tmp_path: Path) -> None:
    (tmp_path / "fail.py").write_text(
        "import json, os, sys, time\n"
        "if json.loads(os.environ['TF_CONFIG'])['task']['index']:\n"
        "    sys.exit(7)\n"
        "time.sleep(1000)\n"
    )
    spec = {
        "script": "fail.py",
        "distribution": {"type": "tensorflow", "worker_count": 2},
        "resources": {"node_count": 1},
    }
    with pytest.raises(AssertionError):
        run_node(tmp_path, spec)


def test_a_launcher_of_the_user_gets_the_rank_of_its_node(tmp_path: Path) -> None:
    command = ["python", "train.py", "--node-rank=$NODE_RANK", "--master=$MASTER_ADDR:$MASTER_PORT"]
    spec = {"script": "", "command": command, "distribution": {"type": "pytorch", "node_count": 2}}
    (process,) = run_node(tmp_path, spec, "10.0.0.1", node=1, MASTER_PORT="7000")
    assert process["words"] == ["--node-rank=1", "--master=10.0.0.1:7000"]
    assert (process["env"]["RANK"], process["env"]["WORLD_SIZE"]) == ("1", "2")


def test_a_time_limit_ends_it(tmp_path: Path) -> None:
    (tmp_path / "sleep.py").write_text("import time\ntime.sleep(1000)\n")
    with pytest.raises(AssertionError):
        run_node(tmp_path, {"script": "sleep.py", "limits": {"timeout_s": 1}})


@pytest.mark.mpi
def test_mpirun_starts_all_processes(tmp_path: Path) -> None:
    openmpi.require()
    spec = {
        "arguments": ["$RANK", *WORDS],
        "distribution": {"type": "mpi", "process_count_per_node": 2},
        "environment_variables": {"NOTE": FULL["environment_variables"]["NOTE"]},
    }
    processes = run_node(tmp_path, spec, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    assert [process["words"][0] for process in processes] == ["0", "1"]
    assert processes[1]["words"][1:] == [word.replace("$$", "$") for word in WORDS]
    assert {process["env"]["WORLD_SIZE"] for process in processes} == {"2"}
    assert {process["env"]["NOTE"] for process in processes} == {FULL["environment_variables"]["NOTE"]}


@pytest.mark.slow
@pytest.mark.frameworks
def test_torchrun_on_two_nodes_adds_up_over_all_ranks(tmp_path: Path, frameworks_python: str) -> None:
    (tmp_path / "sum.py").write_text(
        "import os, sys, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "ones = torch.ones(1)\n"
        "dist.all_reduce(ones)\n"
        "print(f'{sys.argv[1:]} {dist.get_rank()} sum {int(ones)}\\n', end='', flush=True)\n"
        "dist.destroy_process_group()\n"
    )
    spec = {
        "script": "sum.py",
        "arguments": ["a b", "$RANK"],
        "distribution": {"type": "pytorch", "process_count": 4, "node_count": 2},
    }
    export = export_spec(read_spec({"source": SNAPSHOT} | spec), "commands")
    path = f"{Path(frameworks_python).parent}:{os.environ['PATH']}"
    variables = {"PATH": path, "HOME": str(tmp_path), "MASTER_PORT": str(free_port())}
    nodes = []
    for name, text in export.files.items():
        (tmp_path / name).write_text(text)
        argv = ["bash", str(tmp_path / name), "127.0.0.1"]
        nodes.append(subprocess.Popen(argv, env=variables, stdout=subprocess.PIPE, text=True))
    printed = "".join(node.communicate(timeout=120)[0] for node in nodes)
    assert [node.returncode for node in nodes] == [0, 0]
    assert sorted(printed.split("\n")[:-1]) == [f"['a b', '{rank}'] {rank} sum 4" for rank in range(4)]
