/* MIG: the parts of a GPU that are devices of their own. */
#include "world.h"

API nvml_code nvmlDeviceGetMigMode(device *handle, uint *present, uint *pending) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    code = number(one, KEY_mig_mode, present);
    if (!code) *pending = *present;
    return leave(code);
}

API nvml_code nvmlDeviceGetMaxMigDeviceCount(device *handle, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    *into = (uint)value(one, KEY_mig_devices_max);
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetMigDeviceHandleByIndex(device *handle, uint index, device **into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (!has(one, KEY_mig_mode)) return leave(NVML_NOT_SUPPORTED);
    const world *here = current_world();
    for (size_t i = 0; i < here->gpu_count; i++) {
        const gpu *part = &here->gpus[i];
        if (part->parent < 0 || &here->gpus[part->parent] != one || part->index != index || part->removed) continue;
        *into = device_of(part);
        return leave(NVML_SUCCESS);
    }
    return leave(NVML_NOT_FOUND);
}

API nvml_code nvmlDeviceIsMigDeviceHandle(device *handle, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    *into = one->parent >= 0;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device *handle, device **into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (one->parent < 0) return leave(NVML_INVALID_ARGUMENT);
    *into = device_of(&current_world()->gpus[one->parent]);
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetGpuInstanceId(device *handle, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (one->parent < 0) return leave(NVML_NOT_SUPPORTED);
    *into = one->gpu_instance;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetComputeInstanceId(device *handle, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (one->parent < 0) return leave(NVML_NOT_SUPPORTED);
    *into = one->compute_instance;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetAttributes_v2(device *handle, attributes *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (one->parent < 0) return leave(NVML_NOT_SUPPORTED);
    *into = (attributes){.multiprocessors = one->multiprocessors, .copy_engines = 1, .gpu_slices = one->gpu_slices};
    into->compute_slices = one->compute_slices;
    into->memory_mib = (ullong)(value(one, KEY_memory_total_bytes) / (1 << 20));
    return leave(NVML_SUCCESS);
}
