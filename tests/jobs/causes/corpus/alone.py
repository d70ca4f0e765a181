"""Failures that one process comes to by itself."""

from __future__ import annotations

from tests.jobs.causes.corpus.case import Case

ALONE: dict[str, Case] = {
    "missing_module": Case("import numpy, flash_attn", 0, "missing_module", "No module named 'flash_attn'"),
    "missing_module_in_a_chain": Case(
        "try:\n    import apex\nexcept ImportError as error:\n"
        '    raise RuntimeError("install what the model needs") from error\n',
        0,
        "missing_module",
        "install what the model needs",
    ),
    # With the interpreter of .ci/mlflow-env: the slim client keeps no database.
    "mlflow_elsewhere": Case(
        "import mlflow\nmlflow.set_tracking_uri('sqlite:///mine.db')\nmlflow.log_metric('loss', 1.0)\n",
        0,
        "mlflow_elsewhere",
        "not found",
        env={"MLFLOW_RUN_ID": "5f" * 16},
    ),
    "missing_program_module": Case(
        "",
        0,
        "missing_module",
        "No module named nothere",
        launch="module",
        arguments=("nothere",),
    ),
    "missing_mpi4py": Case(
        "import sys\nsys.path = [path for path in sys.path if 'site-packages' not in path]\nfrom mpi4py "
        "import MPI\n",
        0,
        "missing_mpi",
        "No module named 'mpi4py'",
    ),
    "missing_mpi_library": Case(
        "from mpi4py import MPI",
        0,
        "missing_mpi",
        "MPI library",
        env={"MPI4PY_LIBMPI": "/opt/mpi/lib/libmpi.so.40"},
    ),
    "missing_library": Case(
        "import ctypes\nctypes.CDLL('libnvinfer.so.10')",
        0,
        "missing_library",
        "libnvinfer.so.10",
    ),
    "file_not_found": Case(
        "import csv\nprint('reading')\nrows = list(csv.reader(open('data/train.csv')))",
        0,
        "file_not_found",
        "data/train.csv",
    ),
    "script_not_found": Case("", 0, "script_not_found", "can't open file", launch="absent"),
    "bad_argument": Case(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--epochs', "
        "type=int)\np.parse_args()",
        0,
        "bad_argument",
        "unrecognized arguments: --epoch-count",
        arguments=("--epoch-count", "3"),
    ),
    "syntax_error": Case("print('a'\ndef main():\n    pass\n", 0, "syntax_error", "'(' was never closed"),
    "newer_python": Case(
        "def first[T](items: list[T]) -> T:\n    return items[0]\n",
        0,
        "syntax_error",
        "SyntaxError",
    ),
    "permission_denied": Case(
        "import os\nos.makedirs('data')\nopen('data/a.csv', 'w').close()\nos.chmod('data', 0)\n"
        "os.setresuid(65534, 65534, 65534)\n"
        "open('data/a.csv')\n",
        0,
        "permission_denied",
        "data/a.csv",
    ),
    "disk_full": Case(
        "with open('/dev/full', 'w') as out:\n    out.write('x' * 100000)\n",
        0,
        "disk_full",
        "No space left on device",
    ),
    "disk_full_checkpoint": Case(
        "import torch\ntorch.save({'w': torch.zeros(100000)}, '/dev/full')\n",
        0,
        "disk_full",
        "unexpected pos",
    ),
    "too_many_files": Case(
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))\nkept = [open('/dev/null') "
        "for _ in range(40)]\n",
        0,
        "too_many_files",
        "Too many open files",
    ),
    "host_memory_torch": Case(
        "import torch\ntorch.empty(10**14)\n",
        0,
        "host_allocation",
        "can't allocate memory",
    ),
    "host_memory_numpy": Case(
        "import numpy\nnumpy.ones((10**7, 10**7))\n", 0, "host_allocation", "Unable to allocate"
    ),
    "host_memory_python": Case("bytearray(1 << 60)", 0, "host_allocation", "MemoryError"),
    "killed": Case("import os\nprint('step 12', flush=True)\nos.kill(os.getpid(), 9)\n", 0, "killed", ""),
    "segmentation_fault": Case(
        "import ctypes\nprint('step 3')\nctypes.string_at(0)\n", 0, "segmentation_fault", ""
    ),
    "segmentation_fault_told": Case(
        "import ctypes, faulthandler\nfaulthandler.enable()\nctypes.string_at(0)\n",
        0,
        "segmentation_fault",
        "Fatal Python error: Segmentation fault",
    ),
    "aborted": Case("import os\nprint('step 3', flush=True)\nos.abort()\n", 0, "aborted", ""),
    "illegal_instruction": Case("import os\nos.kill(os.getpid(), 4)\n", 0, "illegal_instruction", ""),
    "plain_exit": Case("print('the loss is not a number; giving up')\nraise SystemExit(3)\n", 0, "", ""),
    "nccl_not_built": Case(
        "import torch.distributed as dist\ndist.init_process_group('nccl')\n",
        0,
        "nccl_not_built",
        "NCCL",
    ),
    "no_gpu": Case("import torch\ntorch.ones(1).cuda()\n", 0, "no_gpu", "not compiled with CUDA"),
    "no_gpu_checkpoint": Case(
        "import torch\nx = torch.zeros(1)\nx.__class__\ntorch.save(x, 'a.pt')\n"
        "torch.serialization.validate_cuda_device('cuda:0')\n",
        0,
        "no_gpu",
        "torch.cuda.is_available() is False",
    ),
    "checkpoint_shapes": Case(
        "import torch\nold, new = torch.nn.Linear(4, 2), torch.nn.Linear(4, "
        "3)\nnew.load_state_dict(old.state_dict())\n",
        0,
        "checkpoint_mismatch",
        "size mismatch for weight",
    ),
    "shapes": Case(
        "import torch\ntorch.nn.Linear(4, 2)(torch.ones(8, 3))\n",
        0,
        "shape_mismatch",
        "mat1 and mat2",
    ),
    "loader_worker_raises": Case(
        "import torch.utils.data as data\nclass Rows(data.Dataset):\n    def __len__(self):\n        "
        "return 8\n"
        "    def __getitem__(self, index):\n        raise ValueError(f'row {index} has no label')\n"
        "if __name__ == '__main__':\n    list(data.DataLoader(Rows(), num_workers=1))\n",
        0,
        "",
        "row 0 has no label",
    ),
    "loader_worker_killed": Case(
        "import os, torch.utils.data as data\nclass Rows(data.Dataset):\n    def __len__(self):\n        "
        "return 8\n"
        "    def __getitem__(self, index):\n        os.kill(os.getpid(), 9)\n"
        "if __name__ == '__main__':\n    list(data.DataLoader(Rows(), num_workers=1))\n",
        0,
        "loader_killed",
        "exited unexpectedly",
    ),
    "device_of_a_cpu_build": Case(
        "import torch\ntorch.cuda.set_device(0)\n",
        0,
        "no_gpu",
        "_cuda_setDevice",
    ),
    "thread_raises": Case(
        "import threading, sys\ndef feed():\n    raise ValueError('the queue is closed')\n"
        "thread = threading.Thread(target=feed)\nthread.start()\nthread.join()\nsys.exit(1)\n",
        0,
        "",
        "the queue is closed",
    ),
    "progress_bar_before": Case(
        "import sys\nfor step in range(3000):\n    "
        "print(f'\\r{step:5}|' + '#' * 100, end='', file=sys.stderr)\n"
        "raise ValueError('after the bar')\n",
        0,
        "",
        "after the bar",
    ),
    "connection_reset": Case(
        "raise ConnectionError('a rank has gone')\n",
        0,
        "connection_lost",
        "a rank has gone",
    ),
    "no_name": Case(
        "import urllib.request\nurllib.request.urlopen('https://data.example.invalid/train.csv')\n",
        0,
        "no_network",
        "urlopen error",
    ),
}
