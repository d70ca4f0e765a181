"""Known failures of memory, disk and the devices of a machine."""

from __future__ import annotations

import signal

from jobs.causes.failures.row import FailurePattern

STARVED = FailurePattern(
    "out_of_memory",
    "Out of memory",
    "SIGKILL, and the kernel's count of out-of-memory kills has risen",
    "The node ran out of memory, and the kernel killed this process.",
    "Use fewer processes per node, fewer data loader workers, a smaller batch, or a node with more memory.",
    link="node",
)
KILLED = FailurePattern(
    "killed",
    "Killed from outside",
    "SIGKILL, but the kernel's count of out-of-memory kills has not risen",
    (
        "The process was killed with SIGKILL. The kernel has counted no kill for lack of memory, and does "
        "not record who else sent the signal: a person, another program, or a container's limit."
    ),
    (
        "On the node, `journalctl -k | grep -i killed` shows whether the kernel or a container's limit was "
        "it. If so, use fewer processes per node, fewer data loader workers or a smaller batch. "
        "Otherwise ask who administers the node."
    ),
    signals=(signal.SIGKILL,),
    link="node",
)
MEMORY = (
    FailurePattern(
        "cuda_out_of_memory",
        "CUDA out of memory",
        "`CUDA out of memory`, `OutOfMemoryError`, `CUBLAS_STATUS_ALLOC_FAILED`, `CUDNN_STATUS_ALLOC_FAILED`",
        "The model, its gradients and a batch together do not fit into the GPU's memory.",
        (
            "Use a smaller batch with gradient accumulation, mixed precision or activation checkpointing, "
            "or shard the model (FSDP, DeepSpeed ZeRO). The node's page shows whether another process "
            "holds the memory."
        ),
        r"CUDA out of memory|torch\.OutOfMemoryError|cuda\.OutOfMemoryError|CUDA error: out of "
        r"memory|CUDA_ERROR_OUT_OF_MEMORY"
        r"|CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED",
        link="node",
    ),
    FailurePattern(
        "host_allocation",
        "Not enough memory",
        "`DefaultCPUAllocator: can't allocate memory`, `MemoryError`, `Unable to allocate`, `std::bad_alloc`",
        "The process requested more memory than the node has available.",
        (
            "Load the data in parts, and use smaller arrays, fewer processes per node, or a node with "
            "more memory."
        ),
        r"DefaultCPUAllocator: (?:can't allocate|not enough) "
        r"memory|^MemoryError\b|_ArrayMemoryError|std::bad_alloc"
        r"|Cannot allocate memory|ResourceExhaustedError|Unable to allocate [\d.]+ [KMGTP]iB",
        link="node",
    ),
    FailurePattern(
        "loader_killed",
        "A data loader worker died",
        (
            "`DataLoader worker … is killed by signal`, `DataLoader worker … exited unexpectedly`, "
            "`insufficient shared memory`"
        ),
        (
            "A worker process of the DataLoader was killed, most often for lack of memory or of shared "
            "memory in /dev/shm."
        ),
        (
            "Use fewer workers (num_workers), a smaller batch, or "
            "torch.multiprocessing.set_sharing_strategy('file_system'). Look at the node's memory at that "
            "time."
        ),
        r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is killed by signal|exited unexpectedly)"
        r"|insufficient shared memory \(shm\)",
        link="node",
    ),
    FailurePattern(
        "disk_full",
        "No space left",
        (
            "`No space left on device`, `Disk quota exceeded`, `PytorchStreamWriter failed writing file`, "
            "`unexpected pos`"
        ),
        "The disk that the process wrote to is full.",
        "Free space on the node, keep fewer checkpoints, or write large files to another disk.",
        r"No space left on device|Disk quota exceeded|PytorchStreamWriter failed writing"
        r"|inline_container\.cc:\d+\] \. unexpected pos",
        link="node",
    ),
    FailurePattern(
        "too_many_files",
        "Too many open files",
        "`Too many open files`",
        "The process reached its limit of open files and sockets.",
        (
            "Use fewer data loader workers, close files after use, or set "
            "torch.multiprocessing.set_sharing_strategy('file_system')."
        ),
        r"Too many open files",
    ),
    FailurePattern(
        "bus_error",
        "Bus error",
        "SIGBUS",
        (
            "Memory that is mapped to a file was not available, most often because /dev/shm or the disk "
            "is full."
        ),
        "Use fewer data loader workers, or a node with a larger /dev/shm.",
        signals=(signal.SIGBUS,),
        link="node",
    ),
    FailurePattern(
        "invalid_device",
        "No such GPU",
        "`CUDA error: invalid device ordinal`, `Invalid device id`",
        (
            "The script chose a GPU by a number that does not exist for this process. A process sees only "
            "its own GPUs, counted from 0."
        ),
        (
            "Choose the GPU by LOCAL_RANK only if the process sees several GPUs. With one GPU per process "
            "it is cuda:0."
        ),
        r"invalid device ordinal|Invalid device id|device ordinal value must be",
    ),
    FailurePattern(
        "driver_too_old",
        "NVIDIA driver too old",
        "`The NVIDIA driver on your system is too old`, `CUDA driver version is insufficient`",
        "The CUDA version of the environment needs a newer NVIDIA driver than the node has.",
        "Use a build of the framework for an older CUDA version, or have the node's driver updated.",
        (
            r"NVIDIA driver on your system is too old|CUDA driver version is insufficient|forward "
            r"compatibility "
            r"was attempted on non"
        ),
        link="environments",
    ),
    FailurePattern(
        "gpu_code",
        "The GPU cannot run this build",
        "`no kernel image is available for execution on the device`",
        "The framework was not built for the type of GPU that the node has.",
        "Use a build of the framework that supports this GPU, or another node.",
        r"no kernel image is available for execution",
        link="environments",
    ),
    FailurePattern(
        "gpu_fault",
        "Error on the GPU",
        (
            "`device-side assert triggered`, `illegal memory access`, `unspecified launch failure`, "
            "`uncorrectable ECC error`"
        ),
        "Code on the GPU failed. The traceback may name a later place than the one that failed.",
        (
            "Run again with CUDA_LAUNCH_BLOCKING=1 to see the line that failed; often an index is out of "
            "range (labels, embeddings). After ECC errors, have the GPU checked."
        ),
        r"device-side assert triggered|an illegal memory access was encountered|unspecified launch failure"
        r"|uncorrectable ECC error",
        link="node",
    ),
    FailurePattern(
        "no_gpu",
        "No GPU for the process",
        "`Torch not compiled with CUDA enabled`, `Found no NVIDIA driver`, `No CUDA GPUs are available`, "
        "`torch.cuda.is_available() is False`, `module 'torch._C' has no attribute '_cuda_…'`",
        "The script needs a GPU, but the process has none, or the framework is built without CUDA.",
        (
            "Request GPUs in the run's resources and use a CUDA build, or let the script choose the "
            "device (`torch.device('cuda' if torch.cuda.is_available() else 'cpu')`, `map_location` when "
            "loading)."
        ),
        r"Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available"
        r"|torch\.cuda\.is_available\(\) is False"
        # What torch.cuda.set_device raises in a CPU build.
        r"|module 'torch\._C' has no attribute '_cuda_",
        link="environments",
    ),
)
