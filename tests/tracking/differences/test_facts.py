"""Environment, plan and GPUs of runs side by side."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from clusters.models import Node
from jobs.logs import log_store
from jobs.models import Artifact, AttemptNode, Run
from tests.clusters.telemetry.builders import block, stored
from tests.jobs import builders
from tests.jobs.builders import processes
from tests.tracking.builders import logged_run
from tests.tracking.usage.builders import run_with_gpus
from tracking.comparison.differences import environment, gpus, plans
from tracking.comparison.differences.environment import read_requirements
from tracking.comparison.tables import ComparisonTable
from tracking.models import UsageEntry
from workspaces.access import Principal
from workspaces.stored_files.blob_writer import BlobWriter

NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
HOUR = timedelta(hours=1)


@pytest.fixture
def node(who: Principal) -> Node:
    return builders.node(gpus=2)


def cells(table: ComparisonTable) -> dict[str, list[str | None]]:
    return {row.name: [cell.text for cell in row.cells] for row in table.rows}


def differing(table: ComparisonTable) -> set[str]:
    return {row.name for row in table.rows if row.differs}


class TestEnvironment:
    def test_shows_what_was_asked_for(self, who: Principal, node: Node) -> None:
        one = builders.queued(who, environment={"name": "TrainHub-PyTorch-2.13", "version": "1"})
        other = builders.queued(who)
        tables = environment.compare_software([one, other])
        assert cells(tables.top)["environment"] == ["TrainHub-PyTorch-2.13 1", "the node's own Python"]
        assert cells(tables.packages)["torch"] == ["2.13.0", None]
        assert cells(tables.packages)["numpy"] == ["any", None]

    def test_prefers_what_pip_installed_and_what_the_nodes_found(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - HOUR, NOW)
        Run.objects.filter(pk=run.pk).update(
            spec={**run.spec, "environment": {"name": "TrainHub-PyTorch-2.13", "version": "1"}}
        )
        log_text = (
            b"Collecting torch\nSuccessfully installed numpy-2.3.1 scikit_learn-1.7.0 torch-2.13.0+cpu\n"
        )
        log_store.append(run.pk, 1, "20_environment_build_log.txt", 0, log_text)
        AttemptNode.objects.update(fact={"versions": {"python": "3.11.7", "numpy": "2.3.2"}})
        run.refresh_from_db()
        tables = environment.compare_software([run, run])
        assert cells(tables.top)["python"] == ["3.11.7"] * 2
        versions = {name: cells[0] for name, cells in cells(tables.packages).items()}
        expected = {"mpi4py": "any", "numpy": "2.3.2", "scikit-learn": "1.7.0", "torch": "2.13.0+cpu"}
        assert versions | expected == versions

    def test_of_a_run_from_elsewhere_is_what_its_logged_model_names(self, who: Principal) -> None:
        run = logged_run()
        with BlobWriter() as writer:
            writer.write(b"mlflow==3.17.2\ntorch==2.12.0\n")
            sha256 = writer.finish()
        Artifact.objects.create(
            run=run, attempt=0, path="model/requirements.txt", size_bytes=30, sha256=sha256
        )
        tables = environment.compare_software([run, logged_run()])
        assert cells(tables.packages) == {"mlflow": ["3.17.2", None], "torch": ["2.12.0", None]}
        assert tables.top.rows == ()

    def test_never_shows_a_secrets_value(self, who: Principal, node: Node) -> None:
        run = builders.queued(who, environment_variables={"LR": "0.1"})
        variables = {"LR": "0.2", "KEY": {"secret": "wandb"}}
        Run.objects.filter(pk=run.pk).update(spec={**run.spec, "environment_variables": variables})
        other = builders.queued(who, environment_variables={"LR": "0.1"})
        run.refresh_from_db()
        tables = environment.compare_software([run, other]).variables
        assert cells(tables) == {"KEY": ["secret wandb", None], "LR": ["0.2", "0.1"]}
        assert differing(tables) == {"KEY", "LR"}

    @pytest.mark.parametrize(
        ("line", "requirements"),
        [
            ("torch==2.13.0", {"torch": "2.13.0"}),
            ("Scikit_Learn >= 1.2, < 2  # why", {"scikit-learn": ">=1.2,<2"}),
            ("lightning==2.6.*", {"lightning": "==2.6.*"}),
            ("ray[data]==2.9 ; python_version>'3.8'", {"ray": "2.9"}),
            ("numpy", {"numpy": "any"}),
            ("# comment", {}),
            ("-r other.txt", {}),
            ("", {}),
            ("pkg @ https://x.test/a.whl", {"pkg": "any"}),
        ],
    )
    def test_reads_requirements(self, line: str, requirements: dict[str, str]) -> None:
        assert read_requirements(line) == requirements


class TestPlan:
    def test_compares_commands_processes_nodes_and_variables(self, who: Principal, node: Node) -> None:
        one = run_with_gpus(
            who,
            node,
            NOW - 2 * HOUR,
            NOW - HOUR,
            arguments=["--lr", "0.1"],
            environment_variables={"MODE": "fast"},
        )
        other = run_with_gpus(who, node, NOW - HOUR, NOW, gpus=1, arguments=["--lr", "0.2"])
        tables = plans.compare_plans([one, other])
        facts = cells(tables.facts)
        assert facts["nodes"] == ["alpha (2)", "alpha (1)"]
        assert facts["processes"] == ["2", "1"]
        assert facts["GPUs"] == ["2, 1 a process", "1, 1 a process"]
        assert [str(command).split("train.py ")[1] for command in facts["command"]] == [
            "--lr 0.1",
            "--lr 0.2",
        ]
        variables = cells(tables.variables)
        assert variables["MODE"] == ["fast", None]
        assert variables["RANK"] == ["0 | 1", "0"]
        assert not {"TRAINHUB_RUN_ID", "TRAINHUB_TOKEN"} & variables.keys()

    def test_of_a_run_that_never_started_is_its_preview(self, who: Principal, node: Node) -> None:
        waiting = builders.queued(who, distribution=processes(2))
        tables = plans.compare_plans([waiting, waiting])
        assert tables.previews == (waiting, waiting)
        assert cells(tables.facts)["processes"] == ["2", "2"]

    def test_of_a_run_from_elsewhere_there_is_none(self, who: Principal) -> None:
        run = logged_run()
        assert plans.compare_plans([run, run]).without == (run, run)


class TestGpus:
    def test_are_summed_up_with_what_they_did(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - HOUR, NOW)
        sensors = {
            "utilization_pct": (80.0, 99.0),
            "memory_used_bytes": (2.0**30, 2.0**31),
            "power_w": (300.0, 400.0),
        }
        quiet = {**sensors, "utilization_pct": (40.0, 50.0)}
        stored(
            node, block(int((NOW - HOUR).timestamp()), [{"GPU-alpha-0": sensors, "GPU-alpha-1": quiet}] * 360)
        )
        UsageEntry.objects.create(
            workspace=run.workspace,
            run=run,
            run_number=run.number,
            attempt=1,
            month=NOW.date().replace(day=1),
            gpu_seconds=7200,
            energy_j=600 * 3600,
        )
        facts = cells(gpus.compare_gpus([run, logged_run()]))
        assert facts == {
            "GPUs": ["2 × H200", None],
            "Nodes": ["alpha", None],
            "GPU-hours": ["2.00", None],
            "Energy": ["600 Wh", None],
            "Utilisation, mean": ["60 %", None],
            "Utilisation, highest": ["99 %", None],
            "Memory, mean": ["1.0 GiB", None],
            "Memory, highest": ["2.0 GiB", None],
            "Power, mean": ["300 W", None],
        }

    def test_of_a_run_on_process_slots_are_none(self, who: Principal, node: Node) -> None:
        run = run_with_gpus(who, node, NOW - HOUR, NOW, gpus=0)
        assert cells(gpus.compare_gpus([run, run])) == {"GPUs": ["none"] * 2, "Nodes": ["alpha"] * 2}
