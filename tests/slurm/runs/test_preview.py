"""What is shown before a run is submitted is what Slurm gets."""

from __future__ import annotations

import re

import pytest

from tests.slurm.hub import CLUSTER, SlurmHub

pytestmark = [pytest.mark.slow, pytest.mark.slurm]
ASSIGNED = {
    r"tha_[A-Za-z0-9_-]+": "'<assigned when it is submitted>'",
    r"(?<= )[0-9a-f]{64}$": "'<SHA-256 of the node program>'",
    r'job-name="[^"]+"': 'job-name="run.1-"',
}


def test_the_script_of_the_preview_is_submitted(slurm_hub: SlurmHub) -> None:
    spec = slurm_hub.runs.script_spec(
        "print('done')",
        resources={"cluster": CLUSTER, "memory": 10**9},
        limits={"timeout_s": 600},
    )
    preview = slurm_hub.runs.client.post("/api/v1/runs/preview/", json=spec).json()
    run = slurm_hub.runs.submit(spec)
    slurm_hub.completes(run)
    submitted = slurm_hub.slurm.admin("scontrol", "write", "batch_script", slurm_hub.job(run), "-")
    for pattern, text in ASSIGNED.items():
        submitted = re.sub(pattern, text, submitted, flags=re.MULTILINE)
    assert preview["job_script"].splitlines() == submitted.rstrip().splitlines()
    assert "#SBATCH --mem=954M\n#SBATCH --time=12\n" in preview["job_script"]


def test_a_cluster_without_a_scheduler_has_none(slurm_hub: SlurmHub) -> None:
    preview = slurm_hub.runs.client.post(
        "/api/v1/runs/preview/",
        json=slurm_hub.runs.script_spec("print('done')", resources={"cluster": "local"}),
    ).json()
    assert preview["job_script"] == ""
