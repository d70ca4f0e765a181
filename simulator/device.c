/* What a GPU is and how it does now. */
#include <stdio.h>
#include <string.h>

#include "world.h"

static nvml_code tell(device *handle, const char *call, key which, double scale, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, call, &one);
    if (code) return code;
    if (!into) return leave(NVML_INVALID_ARGUMENT);
    if (!has(one, which)) return leave(NVML_NOT_SUPPORTED);
    *into = (uint)(value(one, which) * scale + 0.5);
    return leave(NVML_SUCCESS);
}

static nvml_code put(const char *text, char *into, uint size) {
    if (!into || !size) return NVML_INVALID_ARGUMENT;
    return snprintf(into, size, "%s", text) < (int)size ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}

API nvml_code nvmlDeviceGetUUID(device *handle, char *into, uint size) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    return code ? code : leave(put(one->uuid, into, size));
}

API nvml_code nvmlDeviceGetName(device *handle, char *into, uint size) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    return code ? code : leave(put(one->name, into, size));
}

API nvml_code nvmlDeviceGetSerial(device *handle, char *into, uint size) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    char text[20];
    if (code) return code;
    snprintf(text, sizeof text, "13229%08u", one->minor);
    return leave(put(text, into, size));
}

API nvml_code nvmlDeviceGetIndex(device *handle, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    *into = one->index;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetMinorNumber(device *handle, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    *into = one->minor;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetPciInfo_v3(device *handle, pci_info *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    *into = (pci_info){.bus = one->bus, .device_id = 0x233010de};
    snprintf(into->bus_id, sizeof into->bus_id, "00000000:%02X:00.0", one->bus);
    snprintf(into->bus_id_legacy, sizeof into->bus_id_legacy, "0000:%02X:00.0", one->bus);
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetCudaComputeCapability(device *handle, int *major, int *minor) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    *major = (int)one->compute_major;
    *minor = (int)one->compute_minor;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetArchitecture(device *handle, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    *into = one->architecture;
    return leave(NVML_SUCCESS);
}

static double reserved_on(const gpu *one) { return value(one, KEY_memory_reserved_bytes); }

/* Version 1 counts the driver's own reserve as used, version 2 does not. */
API nvml_code nvmlDeviceGetMemoryInfo(device *handle, memory_v1 *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (!has(one, KEY_memory_total_bytes) || !has(one, KEY_memory_used_bytes)) return leave(NVML_NOT_SUPPORTED);
    into->total = (ullong)value(one, KEY_memory_total_bytes);
    into->used = (ullong)(value(one, KEY_memory_used_bytes) + reserved_on(one));
    into->free = into->total > into->used ? into->total - into->used : 0;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetMemoryInfo_v2(device *handle, memory_v2 *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (into->version != MEMORY_V2) return leave(NVML_ARGUMENT_VERSION_MISMATCH);
    if (!has(one, KEY_memory_total_bytes) || !has(one, KEY_memory_used_bytes)) return leave(NVML_NOT_SUPPORTED);
    into->total = (ullong)value(one, KEY_memory_total_bytes);
    into->used = (ullong)value(one, KEY_memory_used_bytes);
    into->reserved = (ullong)reserved_on(one);
    into->free = into->total > into->used + into->reserved ? into->total - into->used - into->reserved : 0;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetBAR1MemoryInfo(device *handle, bar1_memory *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (!has(one, KEY_memory_total_bytes)) return leave(NVML_NOT_SUPPORTED);
    into->total = (ullong)value(one, KEY_memory_total_bytes);
    into->used = 1 << 20;
    into->free = into->total - into->used;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetUtilizationRates(device *handle, utilization *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    code = number(one, KEY_utilization_pct, &into->gpu);
    if (!code) code = number(one, KEY_memory_bandwidth_pct, &into->memory);
    return leave(code);
}

static nvml_code coder(device *handle, const char *call, key which, uint *into, uint *period_us) {
    gpu *one;
    nvml_code code = enter(handle, call, &one);
    if (code) return code;
    *period_us = has(one, KEY_sampling_period_us) ? (uint)value(one, KEY_sampling_period_us) : 100000;
    return leave(number(one, which, into));
}

API nvml_code nvmlDeviceGetEncoderUtilization(device *handle, uint *into, uint *period_us) {
    return coder(handle, __func__, KEY_encoder_pct, into, period_us);
}

API nvml_code nvmlDeviceGetDecoderUtilization(device *handle, uint *into, uint *period_us) {
    return coder(handle, __func__, KEY_decoder_pct, into, period_us);
}

API nvml_code nvmlDeviceGetPowerUsage(device *handle, uint *into) { return tell(handle, __func__, KEY_power_w, 1000, into); }

API nvml_code nvmlDeviceGetEnforcedPowerLimit(device *handle, uint *into) {
    return tell(handle, __func__, KEY_power_limit_w, 1000, into);
}

API nvml_code nvmlDeviceGetPowerManagementLimit(device *handle, uint *into) {
    return tell(handle, __func__, KEY_power_management_limit_w, 1000, into);
}

API nvml_code nvmlDeviceGetTotalEnergyConsumption(device *handle, ullong *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (!has(one, KEY_energy_mj)) return leave(NVML_NOT_SUPPORTED);
    *into = (ullong)grown(one, KEY_power_w, 1000, value(one, KEY_energy_mj));
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetTemperature(device *handle, uint sensor, uint *into) {
    return sensor ? NVML_INVALID_ARGUMENT : tell(handle, __func__, KEY_temperature_c, 1, into);
}

API nvml_code nvmlDeviceGetTemperatureV(device *handle, temperature_v1 *into) {
    uint found = 0;
    if (into->version != TEMPERATURE_V1) return NVML_ARGUMENT_VERSION_MISMATCH;
    if (into->sensor) return NVML_INVALID_ARGUMENT;
    nvml_code code = tell(handle, __func__, KEY_temperature_c, 1, &found);
    if (!code) into->temperature = (int)found;
    return code;
}

static nvml_code clock_of(device *handle, const char *call, uint type, uint *into) {
    static const key CLOCKS[] = {KEY_graphics_clock_mhz, KEY_sm_clock_mhz, KEY_memory_clock_mhz, KEY_video_clock_mhz};
    return type > 3 ? NVML_INVALID_ARGUMENT : tell(handle, call, CLOCKS[type], 1, into);
}

API nvml_code nvmlDeviceGetClockInfo(device *handle, uint type, uint *into) { return clock_of(handle, __func__, type, into); }
API nvml_code nvmlDeviceGetMaxClockInfo(device *handle, uint type, uint *into) { return clock_of(handle, __func__, type, into); }

static nvml_code reasons(device *handle, const char *call, ullong *into) {
    uint found = 0;
    nvml_code code = tell(handle, call, KEY_throttle_reasons, 1, &found);
    if (!code) *into = found;
    return code;
}

API nvml_code nvmlDeviceGetCurrentClocksEventReasons(device *handle, ullong *into) { return reasons(handle, __func__, into); }
API nvml_code nvmlDeviceGetCurrentClocksThrottleReasons(device *handle, ullong *into) { return reasons(handle, __func__, into); }

API nvml_code nvmlDeviceGetSupportedClocksEventReasons(device *handle, ullong *into) {
    nvml_code code = reasons(handle, __func__, into);
    if (!code) *into = 0x1ff;
    return code;
}

API nvml_code nvmlDeviceGetFanSpeed(device *handle, uint *into) { return tell(handle, __func__, KEY_fan_pct, 1, into); }

API nvml_code nvmlDeviceGetFanSpeed_v2(device *handle, uint fan, uint *into) {
    return fan ? NVML_INVALID_ARGUMENT : tell(handle, __func__, KEY_fan_pct, 1, into);
}

API nvml_code nvmlDeviceGetNumFans(device *handle, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    *into = has(one, KEY_fan_pct);
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetPerformanceState(device *handle, uint *into) {
    return tell(handle, __func__, KEY_performance_state, 1, into);
}
