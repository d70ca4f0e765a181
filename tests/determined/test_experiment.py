"""Configurations of experiments become specs, or are refused with the line that has to be changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from trainhub_launch.spec_reader import read_spec
from trainhub_sdk.determined.experiment import DeterminedExperiment, read_experiment
from trainhub_sdk.errors import ConfigRefused, TrainHubError
from trainhub_sdk.records.machines import Cluster, Gpu, Node

SINGLE = {"name": "single", "metric": "loss"}
GPU = Gpu(state="ok")


def experiment(entrypoint: Any = "python3 train.py", **fields: Any) -> dict[str, Any]:
    return {"name": "birds", "entrypoint": entrypoint, "searcher": SINGLE, "max_restarts": 0, **fields}


def spec_of(config: dict[str, Any], **options: Any) -> dict[str, Any]:
    imported = read_experiment(config, **{"gpus_per_node": 8, **options})
    for spec in imported.specs:
        read_spec({**spec, "source": {"type": "snapshot", "id": "a" * 64}})
    return imported.spec


def hyperparameters(imported: DeterminedExperiment) -> list[Any]:
    return [json.loads(spec["environment_variables"]["DET_HPARAMS"]) for spec in imported.specs]


def findings(imported: DeterminedExperiment, field: str) -> str:
    return " ".join(finding.message for finding in imported.findings if finding.field == field)


class TestEntrypoint:
    @pytest.mark.parametrize(
        ("entrypoint", "fields"),
        [
            ("python3 train.py --lr 0.1", {"script": "train.py", "arguments": ["--lr", "0.1"]}),
            (["python3", "train.py", "$HOME"], {"script": "train.py", "arguments": ["$$HOME"]}),
            ("./run.sh a", {"command": ["./run.sh", "a"]}),
            ("python3 -m birds.train", {"command": ["python3", "-m", "birds.train"]}),
            ("cd a && python3 b.py $X", {"command": ["bash", "-c", "cd a && python3 b.py $$X"]}),
        ],
    )
    def test_a_program_is_started_as_it_is(self, entrypoint: Any, fields: dict[str, Any]) -> None:
        spec = spec_of(experiment(entrypoint))
        assert {name: spec.get(name) for name in fields} == fields
        assert "distribution" not in spec

    @pytest.mark.parametrize(
        ("launcher", "slots", "distribution"),
        [
            (
                "torch_distributed",
                16,
                {"type": "pytorch", "process_count": 16, "node_count": 2, "communication_backend": "nccl"},
            ),
            (
                "torch_distributed",
                0,
                {"type": "pytorch", "process_count": 1, "node_count": 1, "communication_backend": "gloo"},
            ),
            ("deepspeed", 4, {"type": "mpi", "process_count_per_node": 4, "node_count": 1}),
            ("horovod", 16, {"type": "mpi", "process_count_per_node": 8, "node_count": 2}),
            ("tensorflow", 16, {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 0}),
            ("tensorflow", 4, None),
        ],
    )
    def test_a_launcher_becomes_a_distribution(self, launcher: str, slots: int, distribution: Any) -> None:
        entrypoint = f"python3 -m determined.launch.{launcher} -- python3 train.py"
        spec = spec_of(experiment(entrypoint, resources={"slots_per_trial": slots}))
        assert (spec["script"], spec.get("distribution")) == ("train.py", distribution)

    def test_options_of_torchrun_count_or_are_named(self) -> None:
        words = (
            "python3 -m determined.launch.torch_distributed --nproc_per_node=2 --rdzv_id=7 -- python3 t.py"
        )
        imported = read_experiment(experiment(words), gpus_per_node=8)
        assert imported.spec["distribution"]["process_count"] == 2
        assert "--rdzv_id=7" in findings(imported, "entrypoint")

    @pytest.mark.parametrize(
        "entrypoint",
        ["model_def:Birds", ["python3", "-m", "determined.launch.deepspeed", "--trial", "model_def:Birds"]],
    )
    def test_a_trial_class_is_refused_with_file_line_and_change(
        self, entrypoint: Any, tmp_path: Path
    ) -> None:
        (tmp_path / "model_def.py").write_text("import x\n\nclass Birds:\n    pass\n")
        (tmp_path / "const.json").write_text(json.dumps(experiment(entrypoint)))
        with pytest.raises(ConfigRefused) as refused:
            read_experiment(tmp_path / "const.json")
        assert str(refused.value).startswith(f"{tmp_path}/const.json: entrypoint: model_def:Birds is a trial")
        assert "(model_def.py, line 3)" in str(refused.value)
        assert "entrypoint: python3 train.py" in str(refused.value)

    def test_a_launcher_in_a_line_for_a_shell_is_refused(self) -> None:
        line = "pip install x && python3 -m determined.launch.torch_distributed python3 train.py"
        with pytest.raises(ConfigRefused, match="a launcher within a line for a shell"):
            read_experiment(experiment(line))

    def test_a_script_that_imports_what_runs_do_not_offer_is_named(self, tmp_path: Path) -> None:
        script = "import determined as det\nfrom determined import core, pytorch\nimport determined.keras.x\n"
        (tmp_path / "train.py").write_text(script)
        (tmp_path / "startup-hook.sh").write_text("pip install x\n")
        text = findings(read_experiment(experiment(), tmp_path), "entrypoint")
        assert "train.py, line 2: determined.pytorch is not offered" in text
        assert "train.py, line 3: determined.keras is not offered" in text
        assert "determined.core" not in text.replace("determined.core.init()", "")
        assert "startup-hook.sh is not run" in text


class TestSlots:
    NODES = [
        Node(name="a", cluster="dgx", status="ready", gpus=[GPU] * 4),
        Node(name="b", cluster="dgx", status="lost", gpus=[GPU] * 16),
        Node(name="c", cluster="cpu", status="ready"),
    ]

    @pytest.mark.parametrize(("slots", "nodes", "gpus"), [(1, None, 1), (4, None, 4), (6, 2, 3), (7, 7, 1)])
    def test_slots_are_spread_evenly_over_nodes(self, slots: int, nodes: int | None, gpus: int) -> None:
        config = experiment(resources={"slots_per_trial": slots, "resource_pool": "DGX"})
        clusters = [Cluster(name="dgx"), Cluster(name="cpu")]
        imported = read_experiment(config, clusters=clusters, nodes=self.NODES)
        resources = imported.spec["resources"]
        assert resources == {
            "cluster": "dgx",
            "gpus_per_node": gpus,
            **({"node_count": nodes} if nodes else {}),
        }
        slot_ids = json.loads(imported.spec["environment_variables"]["DET_SLOT_IDS"])
        assert slot_ids == list(range(gpus))

    def test_without_gpus_slots_are_processes(self) -> None:
        imported = read_experiment(experiment(), cluster="cpu", nodes=self.NODES)
        assert imported.spec["resources"] == {"cluster": "cpu"}
        assert "there are no GPUs" in findings(imported, "resources.slots_per_trial")

    def test_one_node_that_is_too_small_is_refused(self) -> None:
        config = experiment(resources={"slots_per_trial": 9, "is_single_node": True})
        with pytest.raises(ConfigRefused, match="no node has 9 GPUs, the largest has 4"):
            read_experiment(config, gpus_per_node=4)

    @pytest.mark.parametrize(("theirs", "ours"), [(1, 10), (41, 0), (42, 0), (99, -10)])
    def test_priorities_are_turned_round(self, theirs: int, ours: int) -> None:
        assert spec_of(experiment(resources={"priority": theirs})).get("priority", 0) == ours


class TestSearch:
    SPACE = {
        "lr": {"type": "log", "minval": -3, "maxval": -1, "base": 10, "count": 3},
        "model": {
            "layers": {"type": "int", "minval": 1, "maxval": 2, "count": 5},
            "kind": {"type": "categorical", "vals": ["a"]},
        },
        "batch": 64,
    }

    def test_a_grid_has_every_combination(self) -> None:
        config = experiment(hyperparameters=self.SPACE, searcher={"name": "grid", "metric": "loss"})
        imported = read_experiment(config)
        points = hyperparameters(imported)
        assert len(points) == 6
        assert [round(point.pop("lr"), 6) for point in points] == [0.001, 0.001, 0.01, 0.01, 0.1, 0.1]
        assert points[:2] == [{"batch": 64, "model": {"kind": "a", "layers": layers}} for layers in (1, 2)]
        assert imported.sweep is not None
        assert (imported.sweep.kind, imported.sweep.metric) == ("grid", "validation/loss")
        assert (imported.sweep.max_trials, imported.sweep.smaller_is_better) == (6, True)

    def test_a_random_search_draws_the_same_each_time(self) -> None:
        searcher = {"name": "random", "metric": "loss", "max_trials": 20, "smaller_is_better": False}
        config = experiment(hyperparameters=self.SPACE, searcher=searcher)
        points = hyperparameters(read_experiment(config))
        assert points == hyperparameters(read_experiment(config))
        assert points != hyperparameters(read_experiment(config, seed=1))
        assert len(points) == 20
        assert all(0.001 <= point["lr"] <= 0.1 for point in points)
        assert {point["model"]["layers"] for point in points} == {1, 2}

    def test_adaptive_asha_is_random_and_says_what_it_costs(self) -> None:
        searcher = {"name": "adaptive_asha", "metric": "x", "max_trials": 3, "time_metric": "batches"}
        imported = read_experiment(experiment(searcher={**searcher, "max_time": 100, "max_rungs": 2}))
        assert len(imported.specs) == 3
        text = findings(imported, "searcher.name")
        assert "each 100 batches long" in text
        assert "1 in 4 go on at each of up to 2 rungs" in text

    def test_one_run_of_a_range_says_which_value_it_has(self) -> None:
        imported = read_experiment(
            experiment(hyperparameters={"n": {"type": "int", "minval": 3, "maxval": 3}})
        )
        assert hyperparameters(imported) == [{"n": 3}]
        assert imported.sweep is None
        assert "3 was drawn" in findings(imported, "hyperparameters.n")

    @pytest.mark.parametrize(
        ("searcher", "space", "sentence"),
        [
            ({"name": "custom"}, {}, "'custom' is not offered"),
            ({"name": "random"}, {}, "needs max_trials"),
            ({"name": "random", "max_trials": 5000}, {}, "5,000 runs are too many"),
            ({"name": "grid"}, {"a": {"type": "double", "minval": 0, "maxval": 1}}, "needs count"),
            ({"name": "grid"}, {"a": {"type": "categorical"}}, "needs vals"),
            (
                {"name": "single"},
                {"a": {"type": "int", "minval": 2, "maxval": 1}},
                "minval must not be larger",
            ),
        ],
    )
    def test_what_cannot_be_searched_is_refused(self, searcher: Any, space: Any, sentence: str) -> None:
        with pytest.raises(ConfigRefused, match=sentence):
            read_experiment(experiment(searcher=searcher, hyperparameters=space))


class TestFields:
    def test_names_limits_and_variables_are_taken_over(self) -> None:
        environment = {
            "environment_variables": {"cpu": ["A=cpu"], "cuda": ["A=b=c", "EMPTY"]},
            "image": "x/y",
        }
        config = experiment(
            project="Birds & bees",
            description="of 2025",
            labels=["old"],
            environment=environment,
            preemption_timeout=120,
            checkpoint_storage={"type": "s3", "secret_key": "hush", "save_trial_latest": 4},
            data={"url": "x", "secrets": {"token": "hush"}},
        )
        del config["max_restarts"]
        spec = spec_of(config, environment="TrainHub-PyTorch-2.13")
        assert (spec["display_name"], spec["experiment"]) == ("birds", "Birds _ bees")
        assert spec["tags"] == {"old": "", "mlflow.note.content": "of 2025"}
        assert spec["limits"] == {"retries": 5, "grace_s": 120}
        assert spec["checkpoint"] == {"keep": 4}
        variables = spec["environment_variables"]
        assert (variables["A"], variables["PYTHONPATH"]) == ("b=c", "trainhub_determined.pyz")
        assert json.loads(variables["DET_EXPERIMENT_CONFIG"])["data"] == {"url": "x"}
        assert "hush" not in json.dumps(spec)

    def test_what_is_left_out_is_named(self) -> None:
        config = experiment(
            slurm={"sbatch_args": []},
            bind_mounts=[{"host_path": "/data", "container_path": "/in"}],
            resources={"shm_size": 1, "colour": 2},
            searcher={**SINGLE, "source_trial_id": 3},
            nonsense=1,
        )
        imported = read_experiment(config)
        for field in (
            "slurm",
            "bind_mounts.0",
            "resources.shm_size",
            "resources.colour",
            "searcher.source_trial_id",
            "nonsense",
            "environment",
        ):
            assert findings(imported, field), field

    def test_yaml_says_the_line_and_reads_numbers_as_determined_did(self, tmp_path: Path) -> None:
        text = "name: birds\nentrypoint: >-\n  python3 train.py\nhyperparameters:\n  lr: 1e-3\n  on: no\n"
        (tmp_path / "const.yaml").write_text(text + "searcher: {name: single}\npbs:\n  slots_per_node: 2\n")
        (tmp_path / ".detignore").write_text("*.csv\n")
        imported = read_experiment(tmp_path / "const.yaml")
        assert hyperparameters(imported) == [{"lr": 0.001, "on": "no"}]
        assert [finding.line for finding in imported.findings if finding.field == "pbs"] == [8]
        assert (imported.folder, imported.ignore) == (tmp_path, ["*.csv"])

    def test_yaml_without_its_reader_says_what_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "const.yaml").write_text("a: 1\n")
        monkeypatch.setitem(sys.modules, "yaml", None)
        with pytest.raises(TrainHubError, match="install PyYAML beside this program, or write it as JSON"):
            read_experiment(tmp_path / "const.yaml")
