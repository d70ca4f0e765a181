"""Files that TrainHub has not written, as people find them in the launchers' own guides."""

from __future__ import annotations

import pytest

from jobs.exports.note import Outcome
from jobs.imports import SpecImport, import_spec
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import DataInput, Variable

TORCHRUN_ON_SLURM = r"""#!/bin/bash
#SBATCH --job-name=multinode-example
#SBATCH --nodes=4
#SBATCH --ntasks=4
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4

nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
nodes_array=($nodes)
head_node=${nodes_array[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)

echo Node IP: $head_node_ip
export LOGLEVEL=INFO

srun torchrun \
--nnodes 4 \
--nproc_per_node 1 \
--rdzv_id $RANDOM \
--rdzv_backend c10d \
--rdzv_endpoint $head_node_ip:29500 \
train.py 50 10
"""
DDP_ON_SLURM = """#!/bin/bash
#SBATCH -J resnet
#SBATCH -N 2
#SBATCH --ntasks-per-node=4   # one per GPU
#SBATCH --gres=gpu:a100:4
#SBATCH --mem=64G
#SBATCH -p gpu --time 1-00:00
module load cuda/12
source activate torch
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29500
srun --cpu-bind=none python train.py --rank $SLURM_PROCID --name "a b"
#SBATCH --nodes=9
"""
SKYPILOT = """name: minGPT
resources:
  accelerators: A100:8
  infra: aws
num_nodes: 2
workdir: ./code
envs: {A: 1}
secrets: [WANDB]
setup: |
  pip install torch
run: |
  MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)
  echo "Starting distributed training, head node: $MASTER_ADDR"
  torchrun \\
    --nnodes=$SKYPILOT_NUM_NODES \\
    --nproc_per_node=$SKYPILOT_NUM_GPUS_PER_NODE \\
    --master_addr=$MASTER_ADDR \\
    --node_rank=${SKYPILOT_NODE_RANK} \\
    main.py
"""
DSTACK = """type: task
name: train-distrib
nodes: 2
python: 3.12
env:
  - NCCL_DEBUG=INFO
  - HF_TOKEN
commands:
  - git clone https://github.com/pytorch/examples.git
  - cd examples
  - torchrun --nproc-per-node=$DSTACK_GPUS_PER_NODE --node-rank=$DSTACK_NODE_RANK multinode.py
resources:
  gpu: 24GB:2
  shm_size: 24GB
max_duration: 2h
"""
AZUREML = """$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
code: src
command: >-
  python train.py
  --epochs ${{inputs.epochs}}
  --data-dir ${{inputs.cifar}}
inputs:
  epochs: 1
  cifar:
    type: uri_folder
    path: azureml:cifar-10-example@latest
environment: azureml:AzureML-pytorch@latest
compute: azureml:gpu-cluster
distribution:
  type: pytorch
  process_count_per_instance: 2
resources:
  instance_count: 2
experiment_name: cifar
description: Train a network
"""


def outcomes(result: SpecImport, line: int) -> set[tuple[str, Outcome]]:
    return {(note.field, note.outcome) for note in result.notes if note.line == line}


class TestSlurm:
    def test_torchrun_on_each_node(self) -> None:
        result = import_spec("sbatch", TORCHRUN_ON_SLURM)
        spec = result.spec
        assert spec.command[:3] == ("torchrun", "--nnodes", "4")
        assert "${MASTER_ADDR}:29500" in spec.command
        assert spec.distribution is not None
        assert spec.distribution.to_json()["process_count"] is None
        assert (spec.node_count, spec.resources.gpus_per_node, spec.resources.cpus) == (4, 1, 4)
        assert spec.environment_variables == {"LOGLEVEL": Variable("INFO")}
        assert outcomes(result, 11) == {("script", Outcome.CHANGED)}
        # The shell's own variable is none of a run.
        assert any("$RANDOM" in note.message for note in result.notes)

    def test_a_process_for_each_gpu(self) -> None:
        result = import_spec("sbatch", DDP_ON_SLURM)
        spec = result.spec
        assert (spec.script, spec.arguments) == ("train.py", ("--rank", "${RANK}", "--name", "a b"))
        assert spec.distribution is not None
        assert spec.distribution.to_json()["process_count"] == 8
        assert spec.resources.memory == 64 * 2**30
        assert spec.limits.timeout_s == 86400
        assert outcomes(result, 5) == {("--gres", Outcome.CHANGED)}
        assert outcomes(result, 7) == {("--partition", Outcome.NONE), ("--time", Outcome.SAME)}
        assert outcomes(result, 8) == {("script", Outcome.NONE)}
        assert outcomes(result, 13) == {("#SBATCH", Outcome.NONE)}

    def test_mpirun_becomes_a_distribution(self) -> None:
        lines = "#!/bin/bash\n#SBATCH -N 2\nmpirun -np 8 --mca btl tcp -x FOO ./a.out --x 1\n"
        spec = import_spec("sbatch", lines).spec
        assert spec.command == ("./a.out", "--x", "1")
        assert spec.distribution is not None
        assert spec.distribution.to_json() == {"type": "mpi", "process_count_per_node": 4, "node_count": 2}

    def test_what_only_a_shell_understands_goes_to_a_shell(self) -> None:
        result = import_spec("sbatch", "#!/bin/bash\npython a.py | tee log\nfor i in 1; do echo $i; done\n")
        assert result.spec.command == (
            "bash",
            "-c",
            "python a.py | tee log\nfor i in 1; do echo $$i; done",
        )
        assert outcomes(result, 2) == {("script", Outcome.CHANGED)}

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("30", 1800),
            ("10:30", 630),
            ("1:00:00", 3600),
            ("2-3", 183600),
            ("1-1:1", 90060),
            ("1-0:0:1", 86401),
        ],
    )
    def test_all_forms_of_a_time_limit(self, text: str, seconds: int) -> None:
        spec = import_spec("sbatch", f"#!/bin/bash\n#SBATCH -t {text}\npython a.py\n").spec
        assert spec.limits.timeout_s == seconds

    @pytest.mark.parametrize("command", ["nvidia-smi -L", "hostname", "."])
    def test_a_script_that_only_prints_runs_its_last_line(self, command: str) -> None:
        text = f"#!/bin/bash\n#SBATCH --nodes=1\nmodule load cuda\nset -e\ndate\n{command}\n"
        result = import_spec("sbatch", text)
        assert list(result.spec.command) == command.split()
        assert "'date': only prints, and is left out" in [note.message for note in result.notes]

    def test_an_empty_script_is_refused_by_the_missing_field(self) -> None:
        with pytest.raises(SpecError) as raised:
            import_spec("sbatch", "#!/bin/bash\n#SBATCH -N 1\n")
        assert raised.value.field == "script"


def test_a_task_of_skypilot() -> None:
    result = import_spec("skypilot", SKYPILOT)
    spec = result.spec
    assert spec.command == (
        "torchrun",
        "--nnodes=2",
        "--nproc_per_node=8",
        "--master_addr=$MASTER_ADDR",
        "--node_rank=${NODE_RANK}",
        "main.py",
    )
    assert spec.environment_variables == {"A": Variable("1"), "WANDB": Variable(secret="WANDB")}
    assert outcomes(result, 3) == {("resources.accelerators", Outcome.CHANGED)}
    assert outcomes(result, 4) == {("resources.infra", Outcome.NONE)}
    assert outcomes(result, 9) == {("setup", Outcome.NONE)}
    assert outcomes(result, 13) == {("run", Outcome.NONE)}


def test_a_task_of_dstack() -> None:
    result = import_spec("dstack", DSTACK)
    spec = result.spec
    assert spec.command[:2] == ("bash", "-c")
    assert spec.command[2].startswith(
        'export DSTACK_NODE_RANK="$$NODE_RANK"\nexport DSTACK_GPUS_PER_NODE=2\n'
    )
    assert spec.node_count == 2
    assert spec.limits.timeout_s == 7200
    assert spec.environment_variables["HF_TOKEN"] == Variable(secret="HF_TOKEN")
    assert outcomes(result, 4) == {("python", Outcome.NONE)}
    assert outcomes(result, 13) == {("resources.gpu", Outcome.CHANGED)}


def test_only_tasks_of_dstack_are_runs() -> None:
    with pytest.raises(SpecError) as raised:
        import_spec("dstack", "type: service\nport: 80\n")
    assert "only a task" in raised.value.message


def test_a_command_job_of_azure_ml() -> None:
    result = import_spec("azureml", AZUREML)
    spec = result.spec
    assert (spec.script, spec.arguments) == (
        "train.py",
        ("--epochs", "1", "--data-dir", "$TRAINHUB_INPUT_CIFAR"),
    )
    assert spec.inputs == {"cifar": DataInput(dataset="cifar-10-example")}
    assert spec.experiment == "cifar"
    assert spec.distribution is not None
    assert spec.distribution.to_json()["process_count"] == 4
    assert outcomes(result, 13) == {("compute", Outcome.NONE)}
    assert outcomes(result, 20) == {("description", Outcome.NONE)}


@pytest.mark.parametrize("source", ["sbatch", "skypilot", "dstack", "azureml"])
def test_a_foreign_file_has_no_source_and_says_so(source: str) -> None:
    texts = {"sbatch": DDP_ON_SLURM, "skypilot": SKYPILOT, "dstack": DSTACK, "azureml": AZUREML}
    result = import_spec(source, texts[source])
    assert "source" not in result.to_json()["spec"]
    assert [note.line for note in result.notes if note.field == "source"] == [None]


def test_files_of_determined_are_left_to_the_command_line() -> None:
    with pytest.raises(SpecError) as raised:
        import_spec("determined", "name: x\n")
    assert raised.value.field == "from"
    assert "trainhub import FILE --from determined" in raised.value.message
