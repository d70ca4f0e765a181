"""Lists the GPUs of this machine with their MIG devices."""

from __future__ import annotations

from ctypes import addressof
from dataclasses import replace
from typing import Any

import pynvml

from trainhub_node.gpu.library import ListedGpu
from trainhub_node.gpu.nvml.calls import memory_info, or_none


def gpu_with_mig_devices(index: int) -> list[ListedGpu]:
    """Returns the GPU with this index, followed by its MIG devices."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    # The current mode, without the pending one, which takes effect only after a reset of the GPU.
    mig = bool((or_none(pynvml.nvmlDeviceGetMigMode, handle) or (0,))[0])
    gpu = replace(_listed_gpu(handle, index), mig=mig)
    slots = range(or_none(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0) if mig else ()
    # Slots without a MIG device have no handle.
    handles = (or_none(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, slot) for slot in slots)
    return [
        gpu,
        *(
            _mig_device(mig_handle, gpu, or_none(pynvml.nvmlDeviceGetGpuInstanceId, mig_handle))
            for mig_handle in handles
            if mig_handle
        ),
    ]


def _mig_device(handle: object, gpu: ListedGpu, instance: int | None) -> ListedGpu:
    return replace(
        _listed_gpu(handle, gpu.index), parent=gpu.uuid, parent_handle=gpu.handle, instance=instance or 0
    )


def _listed_gpu(handle: Any, index: int) -> ListedGpu:
    memory, name = or_none(memory_info, handle), or_none(pynvml.nvmlDeviceGetName, handle) or "GPU"
    return ListedGpu(
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        index=index,
        name=name,
        handle=handle,
        # pynvml makes a new object for each handle, but the pointer in it stays the same for one device.
        handle_id=addressof(handle.contents),
        memory_bytes=int(memory.total) if memory else None,
    )
