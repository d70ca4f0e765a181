"""The blocks of the guides, as they are, and the specs that they mean on the stub hub: two nodes with four
GPUs each in `gpu-cluster`."""

from __future__ import annotations

from typing import Any, NamedTuple

BEGIN = """
import os
from azureml.core import Workspace, Experiment, Environment, ScriptRunConfig
from azureml.core.compute import ComputeTarget, AmlCompute
from azureml.core.compute_target import ComputeTargetException
from azureml.core.runconfig import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
ws = Workspace.from_config()
compute_target = ComputeTarget(workspace=ws, name='gpu-cluster')
pytorch_env = Environment.get(workspace=ws, name='AzureML-PyTorch-1.6-GPU')
tf_env = Environment.get(workspace=ws, name='AzureML-TensorFlow-2.3-GPU')
"""
PYTORCH, TENSORFLOW = {"name": "TrainHub-PyTorch-2.13"}, {"name": "TrainHub-TensorFlow-2.21"}
FOUR = {"cluster": "gpu-cluster", "gpus_per_node": 4}
WHOLE = {"cluster": "gpu-cluster", "gpus_per_node": "all"}


class Snippet(NamedTuple):
    """`spec`: what differs from one to the next; `environment`: of the spec."""

    text: str
    spec: dict[str, Any]
    environment: dict[str, str] = PYTORCH


SNIPPETS = {
    "mpi_per_process": Snippet(
        """
run_config = ScriptRunConfig(
  source_directory='./src', script='train.py', compute_target=compute_target, environment=pytorch_env,
  distributed_job_config=MpiConfiguration(process_count_per_node=4, node_count=2),
)
run = Experiment(ws, 'experiment_name').submit(run_config)
""",
        {
            "experiment": "experiment_name",
            "script": "train.py",
            "distribution": {"type": "mpi", "process_count_per_node": 4, "node_count": 2},
            "resources": FOUR,
        },
    ),
    "horovod_of_the_pytorch_guide": Snippet(
        """
src = ScriptRunConfig(source_directory='./src', script='train.py', compute_target=compute_target,
                      environment=pytorch_env, distributed_job_config=MpiConfiguration(node_count=2))
run = Experiment(ws, name='Tutorial-pytorch-birds').submit(src)
""",
        {
            "experiment": "Tutorial-pytorch-birds",
            "script": "train.py",
            "distribution": {"type": "mpi", "process_count_per_node": 1, "node_count": 2},
            "resources": WHOLE,
        },
    ),
    "pytorch_per_process": Snippet(
        """
run_config = ScriptRunConfig(
  source_directory='./src', script='train.py', arguments=['--epochs', 50], compute_target=compute_target,
  environment=pytorch_env, distributed_job_config=PyTorchConfiguration(process_count=8, node_count=2),
)
run = Experiment(ws, 'experiment_name').submit(run_config)
""",
        {
            "experiment": "experiment_name",
            "script": "train.py",
            "arguments": ["--epochs", "50"],
            "distribution": {
                "type": "pytorch",
                "process_count": 8,
                "node_count": 2,
                "communication_backend": "nccl",
            },
            "resources": FOUR,
        },
    ),
    "local_rank_as_argument": Snippet(
        """
run_config = ScriptRunConfig(
  source_directory='./src', script='train.py', arguments=['--epochs', 50, '--local_rank', '$LOCAL_RANK'],
  compute_target=compute_target, environment=pytorch_env,
  distributed_job_config=PyTorchConfiguration(process_count=4, node_count=2),
)
run = Experiment(ws, 'experiment_name').submit(run_config)
""",
        {
            "experiment": "experiment_name",
            "script": "train.py",
            "arguments": ["--epochs", "50", "--local_rank", "$LOCAL_RANK"],
            "distribution": {
                "type": "pytorch",
                "process_count": 4,
                "node_count": 2,
                "communication_backend": "nccl",
            },
            "resources": {"cluster": "gpu-cluster", "gpus_per_node": 2},
        },
    ),
    "launcher_on_each_node": Snippet(
        """
launch_cmd = ("python -m torch.distributed.launch --nproc_per_node 4 --nnodes 2 --node_rank $NODE_RANK "
              "--master_addr $MASTER_ADDR --master_port $MASTER_PORT --use_env train.py --epochs 50").split()
run_config = ScriptRunConfig(
  source_directory='./src', command=launch_cmd, compute_target=compute_target, environment=pytorch_env,
  distributed_job_config=PyTorchConfiguration(node_count=2),
)
run = Experiment(ws, 'experiment_name').submit(run_config)
""",
        {
            "experiment": "experiment_name",
            "command": [
                "python",
                "-m",
                "torch.distributed.launch",
                "--nproc_per_node",
                "4",
                "--nnodes",
                "2",
                "--node_rank",
                "$NODE_RANK",
                "--master_addr",
                "$MASTER_ADDR",
                "--master_port",
                "$MASTER_PORT",
                "--use_env",
                "train.py",
                "--epochs",
                "50",
            ],
            "distribution": {
                "type": "pytorch",
                "process_count": None,
                "node_count": 2,
                "communication_backend": "nccl",
            },
            "resources": WHOLE,
        },
    ),
    "launcher_on_one_node": Snippet(
        """
launch_cmd = "python -m torch.distributed.launch --nproc_per_node 4 --use_env train.py --epochs 50".split()
run_config = ScriptRunConfig(source_directory='./src', command=launch_cmd, compute_target=compute_target,
                             environment=pytorch_env)
run = Experiment(ws, 'experiment_name').submit(run_config)
""",
        {
            "experiment": "experiment_name",
            "command": [
                "python",
                "-m",
                "torch.distributed.launch",
                "--nproc_per_node",
                "4",
                "--use_env",
                "train.py",
                "--epochs",
                "50",
            ],
            "resources": WHOLE,
        },
    ),
    "hugging_face_with_the_defaults": Snippet(
        """
run_config = ScriptRunConfig(
  source_directory='./src',
  command="python -m torch.distributed.launch --nproc_per_node 8 run_glue.py --do_train",
  compute_target=compute_target, environment=pytorch_env, distributed_job_config=PyTorchConfiguration(),
)
run = Experiment(ws, 'experiment_name').submit(run_config)
""",
        {
            "experiment": "experiment_name",
            "command": [
                "python",
                "-m",
                "torch.distributed.launch",
                "--nproc_per_node",
                "8",
                "run_glue.py",
                "--do_train",
            ],
            "distribution": {
                "type": "pytorch",
                "process_count": None,
                "node_count": 1,
                "communication_backend": "nccl",
            },
            "resources": WHOLE,
        },
    ),
    "lightning": Snippet(
        """
nnodes = 2
args = ['--max_epochs', 50, '--gpus', 2, '--accelerator', 'ddp', '--num_nodes', nnodes]
run_config = ScriptRunConfig(
  source_directory='./src', script='train.py', arguments=args, compute_target=compute_target,
  environment=pytorch_env, distributed_job_config=PyTorchConfiguration(node_count=nnodes),
)
run = Experiment(ws, 'experiment_name').submit(run_config)
""",
        {
            "experiment": "experiment_name",
            "script": "train.py",
            "arguments": ["--max_epochs", "50", "--gpus", "2", "--accelerator", "ddp", "--num_nodes", "2"],
            "distribution": {
                "type": "pytorch",
                "process_count": None,
                "node_count": 2,
                "communication_backend": "nccl",
            },
            "resources": WHOLE,
        },
    ),
    "tensorflow": Snippet(
        """
distr_config = TensorflowConfiguration(worker_count=2, parameter_server_count=0)
run_config = ScriptRunConfig(
  source_directory='./src', script='train.py', compute_target=compute_target, environment=tf_env,
  distributed_job_config=distr_config,
)
run = Experiment(ws, 'experiment_name').submit(run_config)
""",
        {
            "experiment": "experiment_name",
            "script": "train.py",
            "distribution": {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 0},
            "resources": WHOLE,
        },
        TENSORFLOW,
    ),
    "birds_with_arguments": Snippet(
        """
project_folder = './src'
os.makedirs(project_folder, exist_ok=True)
src = ScriptRunConfig(source_directory=project_folder, script='train.py',
                      arguments=['--num_epochs', 30, '--output_dir', './outputs'],
                      compute_target=compute_target, environment=pytorch_env)
run = Experiment(ws, name='Tutorial-pytorch-birds').submit(src)
""",
        {
            "experiment": "Tutorial-pytorch-birds",
            "script": "train.py",
            "arguments": ["--num_epochs", "30", "--output_dir", "./outputs"],
            "resources": WHOLE,
        },
    ),
}
