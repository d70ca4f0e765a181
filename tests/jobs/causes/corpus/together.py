"""Failures among several ranks: one begins, the others lose their connection, or nobody ever meets."""

from __future__ import annotations

from tests.jobs.causes.corpus.case import Case

GLOO = """import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
print("together", flush=True)
"""
RAISE = """if dist.get_rank() == 1:
    raise ValueError("the labels of shard 1 are empty")
dist.all_reduce(torch.ones(1))
"""
RAISE_AND_TIDY = """try:
    if dist.get_rank() == 1:
        raise ValueError("the labels of shard 1 are empty")
    dist.all_reduce(torch.ones(1))
finally:
    if dist.get_rank() == 1:
        dist.destroy_process_group()
        time.sleep(3)
"""
LATE = """from datetime import timedelta
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=timedelta(seconds=4))
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 1:
    time.sleep(60)
dist.{call}
"""
MEET = """from datetime import timedelta
import os, time, torch.distributed as dist
if os.environ["RANK"] == "{absent}":
    time.sleep(60)
dist.init_process_group("gloo", timeout=timedelta(seconds=4))
"""
TENSORFLOW = """import json, os, time, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
@tf.function
def total():
    return strategy.reduce("SUM", strategy.run(lambda: tf.ones(1)), axis=None)
print(float(total()[0]), flush=True)
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1:
    raise ValueError("the labels of shard 1 are empty")
total()
"""
MPI = """from mpi4py import MPI
world = MPI.COMM_WORLD
world.allreduce(1)
print("together", flush=True)
if world.rank == 1:
    {end}
world.allreduce(1)
"""
HOROVOD = """import torch, horovod.torch as hvd
hvd.init()
hvd.allreduce(torch.ones(1), name="first")
print("together", flush=True)
if hvd.rank() == 1:
    raise ValueError("the labels of shard 1 are empty")
{wait}
"""
EXIT_RACE = """import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
for _ in range(10):
    dist.all_reduce(torch.ones(1000))
print("done", flush=True)
"""
SHARD = "the labels of shard 1 are empty"
TOGETHER: dict[str, Case] = {
    "gloo_peer_raises": Case(GLOO + RAISE, 1, "", SHARD, processes=2, linger_s=10),
    "gloo_peer_raises_of_three": Case(GLOO + RAISE, 1, "", SHARD, processes=3, linger_s=10),
    "gloo_peer_raises_and_is_last_to_end": Case(
        GLOO + RAISE_AND_TIDY, 1, "", SHARD, processes=2, linger_s=10
    ),
    "gloo_peer_raises_others_stopped": Case(GLOO + RAISE, 1, "", SHARD, processes=3),
    "gloo_peer_exits": Case(
        GLOO + "if dist.get_rank() == 1:\n    os._exit(3)\ndist.all_reduce(torch.ones(1))\n",
        1,
        "",
        "",
        processes=2,
        linger_s=10,
    ),
    "gloo_peer_ends_early": Case(
        GLOO + "if dist.get_rank() == 1:\n    os._exit(0)\ndist.all_reduce(torch.ones(1))\n",
        0,
        "peer_lost",
        "",
        processes=2,
        linger_s=10,
    ),
    "gloo_peer_killed": Case(
        GLOO + "if dist.get_rank() == 1:\n    os.kill(os.getpid(), 9)\ndist.all_reduce(torch.ones(1))\n",
        1,
        "killed",
        "",
        processes=2,
        linger_s=10,
    ),
    "gloo_peer_stands_still": Case(
        LATE.format(call="all_reduce(torch.ones(1))"), 0, "peer_silent", "4000ms", processes=2
    ),
    "gloo_barrier": Case(
        LATE.format(call="monitored_barrier(timeout=timedelta(seconds=3))"),
        0,
        "peer_silent",
        "monitoredBarrier",
        processes=2,
    ),
    "same_error_everywhere": Case(
        "import torch, xformers_of_mine\n",
        2,
        "missing_module",
        "xformers_of_mine",
        processes=3,
        linger_s=5,
    ),
    "rendezvous_without_rank_1": Case(
        MEET.format(absent=1), 0, "rendezvous_timed_out", "clients", processes=2
    ),
    "rendezvous_without_rank_0": Case(
        MEET.format(absent=0), 1, "rendezvous_timed_out", "timed out", processes=2
    ),
    "unknown_interface": Case(
        GLOO,
        0,
        "unknown_interface",
        "eth9",
        processes=2,
        linger_s=8,
        env={"GLOO_SOCKET_IFNAME": "eth9"},
    ),
    "connect_failed": Case(
        GLOO, 1, "connect_failed", "connectFullMesh failed", launch="namespaces", processes=2
    ),
    "address_in_use": Case(GLOO, 0, "address_in_use", "EADDRINUSE", processes=2, launch="taken"),
    "exit_race": Case(EXIT_RACE, 0, "aborted_at_exit", "", launch="until_aborted", processes=2),
    "torchrun_child_raises": Case(GLOO + RAISE, 0, "", SHARD, launch="torchrun", processes=2),
    "torchrun_child_ended_before_it_told": Case(
        GLOO + RAISE_AND_TIDY,
        0,
        "peer_lost",
        "Read error",
        launch="torchrun",
        processes=2,
    ),
    "torchrun_children_raise_at_once": Case(
        "import os\nprint('rank', os.environ['RANK'], flush=True)\nrows = open('data/train.csv')\n",
        0,
        "file_not_found",
        "data/train.csv",
        launch="torchrun",
        processes=3,
    ),
    "torchrun_syntax_error": Case(
        "def train(:\n    pass\n", 0, "syntax_error", "SyntaxError", launch="torchrun", processes=2
    ),
    "torchrun_child_killed": Case(
        GLOO + "if dist.get_rank() == 1:\n    os.kill(os.getpid(), 9)\ntime.sleep(30)\n",
        0,
        "killed",
        "",
        launch="torchrun",
        processes=2,
    ),
    "torchrun_script_not_found": Case(
        "",
        0,
        "script_not_found",
        "can't open file",
        launch="torchrun_absent",
        processes=1,
    ),
    "launch_local_rank": Case(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--local_rank', "
        "type=int)\np.parse_args()\n",
        0,
        "local_rank_argument",
        "--local-rank",
        launch="launch",
        processes=2,
    ),
    "spawned_child_raises": Case(
        "import torch.multiprocessing as mp\ndef work(rank):\n    if rank == 1:\n        raise "
        "ValueError('shard 1 is empty')\n"
        "if __name__ == '__main__':\n    mp.spawn(work, nprocs=2)\n",
        0,
        "",
        "shard 1 is empty",
    ),
    "pool_child_raises": Case(
        "from concurrent.futures import ProcessPoolExecutor\ndef work(n):\n    raise ValueError(f'row {n} "
        "has no label')\n"
        "if __name__ == '__main__':\n    with ProcessPoolExecutor(2) as pool:\n        list(pool.map(work, "
        "range(4)))\n",
        0,
        "",
        "row 0 has no label",
    ),
    "exception_group": Case(
        "import asyncio\nasync def work():\n    raise ValueError('row 3 has no label')\nasync def main():\n"
        "    async with asyncio.TaskGroup() as tasks:\n        "
        "tasks.create_task(work())\nasyncio.run(main())\n",
        0,
        "",
        "row 3 has no label",
    ),
    "mpi_peer_raises": Case(
        MPI.format(end=f'raise ValueError("{SHARD}")'), 1, "", SHARD, launch="mpi", processes=3
    ),
    "mpi_abort": Case(MPI.format(end="world.Abort(7)"), 1, "", "", launch="mpi", processes=2),
    "horovod_peer_raises": Case(
        HOROVOD.format(wait='import time\ntime.sleep(4)\nhvd.allreduce(torch.ones(1), name="second")'),
        1,
        "",
        SHARD,
        launch="mpi_lenient",
        processes=2,
    ),
    "tensorflow_peer_raises": Case(TENSORFLOW, 1, "", SHARD, launch="tensorflow", processes=2, linger_s=25),
}
