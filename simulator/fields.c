/* nvmlDeviceGetFieldValues: each field answers for itself. */
#include <stdio.h>

#include "world.h"

enum { UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3 };
#define ALL_LINKS 0xffffffffu
#define KIB 1024.0

static nvml_code tell(const gpu *one, key which, double scale, field_value *into) {
    if (!has(one, which)) return NVML_NOT_SUPPORTED;
    into->type = UNSIGNED_INT;
    into->value.ui = (uint)(value(one, which) * scale + 0.5);
    return NVML_SUCCESS;
}

static nvml_code tell_grown(const gpu *one, key rate, double factor, field_value *into) {
    if (!has(one, rate)) return NVML_NOT_SUPPORTED;
    into->type = UNSIGNED_LONG_LONG;
    into->value.ull = (ullong)grown(one, rate, factor, 0);
    return NVML_SUCCESS;
}

/* The traffic is spread evenly over the links. */
static nvml_code link_traffic(const gpu *one, key rate, double factor, field_value *into) {
    double links = value(one, KEY_nvlink_links);
    if (links < 1) return NVML_NOT_SUPPORTED;
    if (into->scope != ALL_LINKS && into->scope >= links) return NVML_INVALID_ARGUMENT;
    return tell_grown(one, rate, into->scope == ALL_LINKS ? factor : factor / links, into);
}

static nvml_code energy(const gpu *one, field_value *into) {
    if (!has(one, KEY_energy_mj)) return NVML_NOT_SUPPORTED;
    into->type = UNSIGNED_LONG_LONG;
    into->value.ull = (ullong)grown(one, KEY_power_w, 1000, value(one, KEY_energy_mj));
    return NVML_SUCCESS;
}

static nvml_code ask(const gpu *one, field_value *into) {
    switch (into->field) {
    case 3: return tell(one, KEY_ecc_corrected_volatile, 1, into);
    case 4: return tell(one, KEY_ecc_uncorrected_volatile, 1, into);
    case 5: return tell(one, KEY_ecc_corrected, 1, into);
    case 6: return tell(one, KEY_ecc_uncorrected, 1, into);
    case 29: return tell(one, KEY_retired_pages_sbe, 1, into);
    case 30: return tell(one, KEY_retired_pages_dbe, 1, into);
    case 31: return tell(one, KEY_retired_pages_pending, 1, into);
    case 38: return tell(one, KEY_nvlink_crc_errors, 1, into);
    case 52: return tell(one, KEY_nvlink_replays, 1, into);
    case 59: return tell(one, KEY_nvlink_recoveries, 1, into);
    case 82: return tell(one, KEY_memory_temperature_c, 1, into);
    case 83: return energy(one, into);
    case 91: return tell(one, KEY_nvlink_links, 1, into);
    case 94: return tell(one, KEY_pcie_replays, 1, into);
    case 138: return link_traffic(one, KEY_nvlink_tx_bytes_s, 1 / KIB, into);
    case 139: return link_traffic(one, KEY_nvlink_rx_bytes_s, 1 / KIB, into);
    case 140: return link_traffic(one, KEY_nvlink_tx_bytes_s, 1.1 / KIB, into); /* with the protocol's own bytes */
    case 141: return link_traffic(one, KEY_nvlink_rx_bytes_s, 1.1 / KIB, into);
    case 142: return tell(one, KEY_remapped_rows_corrected, 1, into);
    case 143: return tell(one, KEY_remapped_rows_uncorrected, 1, into);
    case 144: return tell(one, KEY_remapped_rows_pending, 1, into);
    case 145: return tell(one, KEY_remapped_rows_failed, 1, into);
    case 185: case 186: return tell(one, KEY_power_w, 1000, into);
    case 190: return tell(one, KEY_power_limit_w, 1000, into);
    case 197: return tell_grown(one, KEY_pcie_tx_bytes_s, 1, into);
    case 198: return tell_grown(one, KEY_pcie_rx_bytes_s, 1, into);
    case 202: return link_traffic(one, KEY_nvlink_tx_bytes_s, 1, into);
    case 204: return link_traffic(one, KEY_nvlink_rx_bytes_s, 1, into);
    default: return NVML_NOT_SUPPORTED;
    }
}

API nvml_code nvmlDeviceGetFieldValues(device *handle, int count, field_value *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "field:%u", into[i].field);
        into[i].at_us = (int64_t)(now() * 1e6);
        into[i].latency_us = 1;
        into[i].code = refusal(one, name);
        if (!into[i].code) into[i].code = ask(one, &into[i]);
    }
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetNvLinkState(device *handle, uint link, uint *active) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (!has(one, KEY_nvlink_links)) return leave(NVML_NOT_SUPPORTED);
    if (link >= value(one, KEY_nvlink_links)) return leave(NVML_INVALID_ARGUMENT);
    *active = 1;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetViolationStatus(device *handle, uint policy, violation_time *into) {
    static const uint REASONS[] = {0x84, 0x68, 0x10}; /* power, thermal, sync boost */
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (!has(one, KEY_throttle_reasons) || policy > 2) return leave(NVML_NOT_SUPPORTED);
    double since = now() - current_world()->start;
    bool slowed = (uint)value(one, KEY_throttle_reasons) & REASONS[policy];
    *into = (violation_time){(ullong)(now() * 1e6), slowed ? (ullong)(since * 1e9) : 0};
    return leave(NVML_SUCCESS);
}
