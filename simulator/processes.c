/* What NVML says about the processes on a GPU: those of the scenario's own list, and those that were given the GPU. */
#include "world.h"

#define SAMPLES_EVERY_US 200000

/* Those that are only seen share what the GPU's curves say. */
static size_t shared_among_visible(const gpu *one, process *found, size_t most) {
    uint pids[MOST_PROCESSES];
    size_t count = holders_of(one, pids, most < MOST_PROCESSES ? most : MOST_PROCESSES);
    for (size_t i = 0; i < count; i++) {
        found[i] = (process){.pid = pids[i], .memory = ~0ull, .gpu_instance = ~0u, .compute_instance = ~0u};
        if (has(one, KEY_memory_used_bytes)) found[i].memory = (ullong)(value(one, KEY_memory_used_bytes) / (double)count);
        found[i].sm = (uint)(value(one, KEY_utilization_pct) / (double)count);
        found[i].memory_pct = (uint)(value(one, KEY_memory_bandwidth_pct) / (double)count);
        if (one->parent >= 0) {
            found[i].gpu_instance = one->gpu_instance;
            found[i].compute_instance = one->compute_instance;
        }
    }
    return count;
}

size_t processes_of(const gpu *one, process *found, size_t most) {
    size_t count = 0;
    for (; count < one->process_count && count < most; count++) found[count] = one->processes[count];
    if (one->visible) count += shared_among_visible(one, found + count, most - count);
    const world *present = current_world();
    for (size_t i = 0; one->parent < 0 && i < present->gpu_count; i++)
        if (present->gpus[i].parent >= 0 && &present->gpus[present->gpus[i].parent] == one)
            count += processes_of(&present->gpus[i], found + count, most - count);
    return count;
}

static nvml_code list(device *handle, const char *call, bool graphics, uint *count, process_info *into) {
    gpu *one;
    process found[MOST_PROCESSES];
    nvml_code code = enter(handle, call, &one);
    if (code) return code;
    if (!count) return leave(NVML_INVALID_ARGUMENT);
    size_t all = processes_of(one, found, MOST_PROCESSES), wanted = 0;
    for (size_t i = 0; i < all; i++)
        if (found[i].graphics == graphics) found[wanted++] = found[i];
    uint room = *count;
    *count = (uint)wanted;
    if (room < wanted) return leave(NVML_INSUFFICIENT_SIZE);
    for (size_t i = 0; into && i < wanted; i++)
        into[i] = (process_info){found[i].pid, found[i].memory, found[i].gpu_instance, found[i].compute_instance};
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetComputeRunningProcesses_v3(device *handle, uint *count, process_info *into) {
    return list(handle, __func__, false, count, into);
}

API nvml_code nvmlDeviceGetComputeRunningProcesses_v2(device *handle, uint *count, process_info *into) {
    return list(handle, __func__, false, count, into);
}

API nvml_code nvmlDeviceGetGraphicsRunningProcesses_v3(device *handle, uint *count, process_info *into) {
    return list(handle, __func__, true, count, into);
}

API nvml_code nvmlDeviceGetGraphicsRunningProcesses_v2(device *handle, uint *count, process_info *into) {
    return list(handle, __func__, true, count, into);
}

API nvml_code nvmlDeviceGetMPSComputeRunningProcesses_v3(device *handle, uint *count, process_info *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    (void)into;
    if (code) return code;
    *count = 0;
    return leave(NVML_SUCCESS);
}

/* The moment of the newest samples; the driver keeps them at a rhythm of its own. */
static ullong sampled_at(void) {
    ullong moment = (ullong)(now() * 1e6);
    return moment - moment % SAMPLES_EVERY_US;
}

API nvml_code nvmlDeviceGetProcessUtilization(device *handle, process_sample *into, uint *count, ullong last_seen) {
    gpu *one;
    process found[MOST_PROCESSES];
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    ullong at = sampled_at();
    size_t all = at > last_seen ? processes_of(one, found, MOST_PROCESSES) : 0;
    uint room = *count;
    *count = (uint)all;
    if (!all) return leave(NVML_NOT_FOUND);
    if (!into || room < all) return leave(NVML_INSUFFICIENT_SIZE);
    for (size_t i = 0; i < all; i++)
        into[i] = (process_sample){found[i].pid, at, found[i].sm, found[i].memory_pct, found[i].encoder, found[i].decoder};
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetProcessesUtilizationInfo(device *handle, process_samples_v1 *asked) {
    gpu *one;
    process found[MOST_PROCESSES];
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (asked->version != PROCESS_SAMPLES_V1) return leave(NVML_ARGUMENT_VERSION_MISMATCH);
    ullong at = sampled_at();
    size_t all = at > asked->last_seen_us ? processes_of(one, found, MOST_PROCESSES) : 0;
    uint room = asked->count;
    asked->count = (uint)all;
    if (!all) return leave(NVML_NOT_FOUND);
    if (!asked->samples || room < all) return leave(NVML_INSUFFICIENT_SIZE);
    for (size_t i = 0; i < all; i++) {
        process_sample_v1 sample = {.at_us = at, .pid = found[i].pid, .sm = found[i].sm, .memory = found[i].memory_pct};
        sample.encoder = found[i].encoder;
        sample.decoder = found[i].decoder;
        asked->samples[i] = sample;
    }
    return leave(NVML_SUCCESS);
}
