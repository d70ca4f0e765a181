"""A spec as a batch script and as commands for each node, started by hand on the machines of a Slurm."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.exports import export_spec
from tests.hosts.machine import Machine
from tests.node.accounts import ADA
from tests.slurm.cluster import SlurmCluster
from tests.slurm.hub import base_prefix
from tests.slurm.people import Person
from tests.wizard.specs import SNAPSHOT
from trainhub_launch.spec_reader import read_spec

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.frameworks, pytest.mark.long]
SUM = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
ones = torch.ones(1)
dist.all_reduce(ones)
words = [*sys.argv[1:], dist.get_rank(), os.environ["LOCAL_RANK"], int(ones), os.uname().nodename]
# At once, so that no other rank writes between them.
os.write(1, ("|".join(map(str, words)) + "\\n").encode())
dist.destroy_process_group()
"""
SUBMIT = 'cd "$1" && HOME=$1 PATH="$2:$PATH" exec sbatch --parsable run.sbatch'
COUNTED = {"type": "pytorch", "communication_backend": "gloo", "process_count": 4, "node_count": 2}
BY_NODE = {"type": "pytorch", "communication_backend": "gloo", "node_count": 2}
TORCHRUN = [
    *("torchrun", "--nproc_per_node", "2", "--nnodes", "2", "--node_rank", "$NODE_RANK"),
    *("--master_addr", "$MASTER_ADDR", "--master_port", "$MASTER_PORT", "sum.py", "a b"),
]
SPECS: dict[str, dict[str, Any]] = {
    "a task for each process": {"script": "sum.py", "arguments": ["a b"], "distribution": COUNTED},
    "torchrun on each node": {"command": TORCHRUN, "distribution": BY_NODE},
}


class Project:
    """A folder with code that all machines see, and the programs of an interpreter that people may read."""

    def __init__(self, slurm: SlurmCluster, folder: Path, python: str) -> None:
        self.folder, self.programs = folder, Path(python).parent
        slurm.let_people_read(self.programs.parent, base_prefix(self.programs.parent))
        folder.mkdir()
        os.chown(folder, ADA, ADA)
        (folder / "sum.py").write_text(SUM)

    def export(self, spec: dict[str, Any], to: str) -> list[str]:
        """Writes the files of the format there, and returns their names."""
        full = {"source": SNAPSHOT, "resources": {"memory": 1_800_000_000}, **spec}
        files = export_spec(read_spec(full), to).files
        for name, text in files.items():
            (self.folder / name).write_text(text)
        return sorted(files)


@pytest.fixture
def project(slurm: SlurmCluster, frameworks_python: str) -> Iterator[Project]:
    folder = slurm.folder / "project"
    try:
        yield Project(slurm, folder, frameworks_python)
    finally:
        shutil.rmtree(folder)


def check_ranks(lines: list[str], machines: list[Machine]) -> None:
    """Two ranks on each machine in order, all of which have met."""
    expected = [f"a b|{rank}|{rank % 2}|4|{machines[rank // 2].name}" for rank in range(4)]
    assert sorted(line for line in lines if line.startswith("a b|")) == expected, lines


@pytest.mark.parametrize("shape", SPECS)
def test_a_batch_script_submitted_by_hand(ada: Person, project: Project, shape: str) -> None:
    assert project.export(SPECS[shape], "sbatch") == ["run.sbatch"]
    argv = ["sh", "-c", SUBMIT, "sh", str(project.folder), str(project.programs)]
    job = int(ada.commands.run(argv))
    ada.jobs.append(job)
    status = ada.until_ended(job)
    (log,) = project.folder.glob(f"*-{job}.log")
    assert status.state.word == "COMPLETED", log.read_text()
    check_ranks(log.read_text().splitlines(), [ada.cluster.nodes[name] for name in status.nodes])


@pytest.mark.parametrize("shape", SPECS)
def test_commands_on_two_machines_by_hand(slurm: SlurmCluster, project: Project, shape: str) -> None:
    names = project.export(SPECS[shape], "commands")
    assert names == ["node_0.sh", "node_1.sh"]
    machines = [slurm.nodes["n1"], slurm.nodes["n2"]]
    variables = {"HOME": str(project.folder), "PATH": f"{project.programs}:{os.environ['PATH']}"}
    as_ada = ["setpriv", f"--reuid={ADA}", f"--regid={ADA}", "--clear-groups", "env"]
    as_ada += [f"{name}={value}" for name, value in variables.items()]
    nodes = [
        subprocess.Popen(
            machine.inside(*as_ada, "bash", str(project.folder / name), machines[0].address),
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        for machine, name in zip(machines, names, strict=True)
    ]
    lines = "".join(node.communicate(timeout=180)[0] for node in nodes).splitlines()
    assert [node.returncode for node in nodes] == [0, 0], lines
    check_ranks(lines, machines)
