/* How a GPU's memory and its bus bear up: ECC, retired pages, remapped rows, PCIe. */
#include "world.h"

#define DEVICE_MEMORY 2
#define PCIE_WINDOW_MS 20 /* over which the driver counts, and for which the call blocks */

static nvml_code tell(device *handle, const char *call, key which, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, call, &one);
    return code ? code : leave(number(one, which, into));
}

static nvml_code ecc(const gpu *one, uint type, uint counter, ullong *into) {
    static const key COUNTERS[2][2] = {
        {KEY_ecc_corrected_volatile, KEY_ecc_corrected}, {KEY_ecc_uncorrected_volatile, KEY_ecc_uncorrected}};
    if (type > 1 || counter > 1) return NVML_INVALID_ARGUMENT;
    key which = COUNTERS[type][counter];
    if (!has(one, which)) return NVML_NOT_SUPPORTED;
    *into = (ullong)value(one, which);
    return NVML_SUCCESS;
}

API nvml_code nvmlDeviceGetTotalEccErrors(device *handle, uint type, uint counter, ullong *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    return code ? code : leave(ecc(one, type, counter, into));
}

API nvml_code nvmlDeviceGetMemoryErrorCounter(device *handle, uint type, uint counter, uint location, ullong *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    code = ecc(one, type, counter, into);
    if (!code && location != DEVICE_MEMORY) *into = 0;
    return leave(code);
}

API nvml_code nvmlDeviceGetEccMode(device *handle, uint *present, uint *pending) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    if (!has(one, KEY_ecc_corrected)) return leave(NVML_NOT_SUPPORTED);
    *present = *pending = 1;
    return leave(NVML_SUCCESS);
}

static nvml_code retired(device *handle, const char *call, uint cause, uint *count, ullong *pages, ullong *times) {
    gpu *one;
    uint found;
    nvml_code code = enter(handle, call, &one);
    if (code) return code;
    if (cause > 1) return leave(NVML_INVALID_ARGUMENT);
    code = number(one, cause ? KEY_retired_pages_dbe : KEY_retired_pages_sbe, &found);
    if (code) return leave(code);
    uint room = *count;
    *count = found;
    if (room < found) return leave(NVML_INSUFFICIENT_SIZE);
    for (uint i = 0; pages && i < found; i++) {
        pages[i] = 0x1000ull * (i + 1);
        if (times) times[i] = (ullong)now();
    }
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetRetiredPages(device *handle, uint cause, uint *count, ullong *pages) {
    return retired(handle, __func__, cause, count, pages, NULL);
}

API nvml_code nvmlDeviceGetRetiredPages_v2(device *handle, uint cause, uint *count, ullong *pages, ullong *times) {
    return retired(handle, __func__, cause, count, pages, times);
}

API nvml_code nvmlDeviceGetRetiredPagesPendingStatus(device *handle, uint *into) {
    return tell(handle, __func__, KEY_retired_pages_pending, into);
}

API nvml_code nvmlDeviceGetRemappedRows(device *handle, uint *corrected, uint *uncorrected, uint *pending, uint *failed) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    code = number(one, KEY_remapped_rows_corrected, corrected);
    if (!code) code = number(one, KEY_remapped_rows_uncorrected, uncorrected);
    if (!code) code = number(one, KEY_remapped_rows_pending, pending);
    if (!code) code = number(one, KEY_remapped_rows_failed, failed);
    return leave(code);
}

API nvml_code nvmlDeviceGetPcieThroughput(device *handle, uint counter, uint *kilobytes_s) {
    gpu *one;
    uint direction = counter ? KEY_pcie_rx_bytes_s : KEY_pcie_tx_bytes_s;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    code = counter > 1 ? NVML_INVALID_ARGUMENT : has(one, direction) ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
    if (!code) *kilobytes_s = (uint)(value(one, direction) / 1000);
    leave(code);
    if (!code) pause_ms(PCIE_WINDOW_MS);
    return code;
}

API nvml_code nvmlDeviceGetPcieReplayCounter(device *handle, uint *into) {
    return tell(handle, __func__, KEY_pcie_replays, into);
}

API nvml_code nvmlDeviceGetCurrPcieLinkGeneration(device *handle, uint *into) {
    return tell(handle, __func__, KEY_pcie_generation, into);
}

API nvml_code nvmlDeviceGetMaxPcieLinkGeneration(device *handle, uint *into) {
    return tell(handle, __func__, KEY_pcie_generation_max, into);
}

API nvml_code nvmlDeviceGetCurrPcieLinkWidth(device *handle, uint *into) { return tell(handle, __func__, KEY_pcie_width, into); }

API nvml_code nvmlDeviceGetMaxPcieLinkWidth(device *handle, uint *into) {
    return tell(handle, __func__, KEY_pcie_width_max, into);
}
