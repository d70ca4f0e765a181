"""The script of a job, and the settings of a cluster."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from clusters.backends.slurm.script import BatchJob, WarningSignal, batch_script
from clusters.backends.slurm.settings import CommandHost, SlurmSettings, parse_command_host, validate

JOB = BatchJob(
    "training",
    "main",
    ("srun python train.py",),
    nodes=2,
    tasks_per_node=4,
    cpus_per_task=8,
    gpus_per_node=4,
    gres="gpu:a100",
    memory_mb=64000,
    time_limit_s=90,
    warning=WarningSignal("USR1", 120),
    can_requeue=True,
    account="team",
    qos="small",
    environment={"WORD": "it's"},
)
SCRIPT = """#!/bin/sh
#SBATCH --job-name="training"
#SBATCH --partition=main
#SBATCH --account=team
#SBATCH --qos=small
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:a100:4
#SBATCH --mem=64000M
#SBATCH --time=2
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --chdir=/tmp
#SBATCH --output=/dev/null

export WORD='it'"'"'s'
srun python train.py
"""


def test_a_script_can_be_read() -> None:
    assert batch_script(JOB) == SCRIPT


@pytest.mark.parametrize("name", ['a"b', "a\nb\n#SBATCH -p x", "$(touch x)", "\\", "", "\0", "a" * 500])
def test_a_name_stays_in_its_line(name: str) -> None:
    lines = batch_script(replace(JOB, name=name)).splitlines()
    assert len(lines) == len(SCRIPT.splitlines())
    assert lines[1].startswith('#SBATCH --job-name="')
    assert lines[1].endswith('"')
    assert lines[2:] == SCRIPT.splitlines()[2:]


def test_values_reach_the_shell_as_they_are() -> None:
    value = 'it\'s "$(id)" `x`\n\\ $HOME'
    script = batch_script(replace(JOB, environment={"WORD": value}, body=('printf %s "$WORD"',)))
    assert subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True).stdout == value


@pytest.mark.parametrize("value", ["-x", "a b", "a\n", "a\n#SBATCH -p x", "$(id)", "a,b", "a#b", '"'])
@pytest.mark.parametrize("name", ["partition", "account", "qos", "gres", "folder", "output"])
def test_other_values_are_checked(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"cannot be a {name}"):
        batch_script(replace(JOB, **{name: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize("environment", [{"A B": ""}, {"A\n": ""}, {"1": ""}, {"": ""}, {"A": "\0"}])
def test_variables_are_checked(environment: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"variable|null"):
        batch_script(replace(JOB, environment=environment))


def test_hosts_of_commands() -> None:
    assert parse_command_host("ada@login.example:2222") == CommandHost("ada", "login.example", 2222)
    assert parse_command_host("ada@login") == CommandHost("ada", "login")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"command_host": text}, "command_host")
        for text in (
            "login",
            "-o@x",
            "a@-x",
            "a@x:0",
            "a@x:99999",
            "a@x -p",
            "a@x\n",
            "root@x",
            "a@b@c",
            "a@x:٣",
        )
    ]
    + [
        ({name: text}, name)
        for name in ("partition", "account", "qos")
        for text in ("-x", "a b", "a\n", "a,b")
    ]
    + [
        ({"partition": ""}, "partition"),
        ({"default_time_s": 0}, "default_time_s"),
        ({"default_time_s": 10**7}, "default_time_s"),
        ({"max_time_s": 10**9}, "max_time_s"),
        ({"gres": {"H100": "gpu h100"}}, "gres"),
        ({"shared_folder": "home"}, "shared_folder"),
        ({"shared_folder": "/a/../b"}, "shared_folder"),
        ({"shared_folder": "/a\n"}, "shared_folder"),
    ],
)
def test_settings_that_are_refused(changes: dict[str, object], field: str) -> None:
    problems = validate(replace(SlurmSettings("main"), **changes))  # type: ignore[arg-type]
    assert [problem.field for problem in problems] == [field]
    assert problems[0].message.endswith(".")


def test_settings_that_are_accepted() -> None:
    settings = SlurmSettings(
        "gpu-long",
        "trainhub@login.example:22",
        "team_a",
        "high",
        3600,
        86400,
        {"": "gpu", "H100": "gpu:h100"},
        "/scratch",
    )
    assert validate(settings) == []
    assert [settings.gres_name(model) for model in ("H100", "A100", "")] == ["gpu:h100", "gpu", "gpu"]
