/* GPM, the profiling counters of Hopper and newer: a metric is the mean between two samples of one GPU or GPU instance. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define MIB 1048576.0
#define GPM_VERSION 1

static const struct { uint id; key key; double scale; } METRICS[] = {
    {1, KEY_engine_active_pct, 1}, {2, KEY_sm_active_pct, 1}, {3, KEY_sm_occupancy_pct, 1}, {5, KEY_tensor_active_pct, 1},
    {7, KEY_hmma_active_pct, 1}, {10, KEY_dram_active_pct, 1}, {11, KEY_fp64_active_pct, 1}, {12, KEY_fp32_active_pct, 1},
    {13, KEY_fp16_active_pct, 1}, {20, KEY_pcie_tx_bytes_s, 1 / MIB}, {21, KEY_pcie_rx_bytes_s, 1 / MIB},
    {60, KEY_nvlink_rx_bytes_s, 1 / MIB}, {61, KEY_nvlink_tx_bytes_s, 1 / MIB}};
#define METRIC_COUNT (sizeof METRICS / sizeof *METRICS)

struct gpm_sample {
    char uuid[96];
    double at, value[METRIC_COUNT];
    uint refused[METRIC_COUNT];
};

API nvml_code nvmlGpmSampleAlloc(gpm_sample **into) {
    *into = calloc(1, sizeof **into);
    return *into ? NVML_SUCCESS : NVML_MEMORY;
}

API nvml_code nvmlGpmSampleFree(gpm_sample *sample) {
    free(sample);
    return NVML_SUCCESS;
}

API nvml_code nvmlGpmQueryDeviceSupport(device *handle, gpm_support *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    into->supported = one->gpm;
    return leave(into->version == GPM_VERSION ? NVML_SUCCESS : NVML_ARGUMENT_VERSION_MISMATCH);
}

static void fill(gpm_sample *sample, const gpu *one, const gpu *rules) {
    snprintf(sample->uuid, sizeof sample->uuid, "%s", one->uuid);
    sample->at = now();
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "gpm:%u", METRICS[i].id);
        sample->refused[i] = refusal(rules, name);
        if (!sample->refused[i] && !has(one, METRICS[i].key)) sample->refused[i] = NVML_NOT_SUPPORTED;
        sample->value[i] = value(one, METRICS[i].key) * METRICS[i].scale;
    }
}

API nvml_code nvmlGpmSampleGet(device *handle, gpm_sample *sample) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (!one->gpm || !sample) return leave(sample ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT);
    fill(sample, one, one);
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlGpmMigSampleGet(device *handle, uint gpu_instance, gpm_sample *sample) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (!one->gpm || !sample) return leave(sample ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT);
    const world *here = current_world();
    for (size_t i = 0; i < here->gpu_count; i++) {
        const gpu *part = &here->gpus[i];
        if (part->parent < 0 || &here->gpus[part->parent] != one || part->gpu_instance != gpu_instance) continue;
        fill(sample, part, one);
        return leave(NVML_SUCCESS);
    }
    return leave(NVML_INVALID_ARGUMENT);
}

static void answer(gpm_metric *asked, const gpm_sample *first, const gpm_sample *second) {
    asked->code = NVML_NOT_SUPPORTED;
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (METRICS[i].id == asked->id) {
            asked->code = second->refused[i];
            asked->value = (first->value[i] + second->value[i]) / 2;
        }
}

API nvml_code nvmlGpmMetricsGet(gpm_request *asked) {
    if (asked->version != GPM_VERSION) return NVML_ARGUMENT_VERSION_MISMATCH;
    const gpm_sample *first = asked->first, *second = asked->second;
    if (!first || !second || strcmp(first->uuid, second->uuid) || second->at <= first->at) return NVML_INVALID_ARGUMENT;
    for (uint i = 0; i < asked->count; i++) answer(&asked->metrics[i], first, second);
    return NVML_SUCCESS;
}
