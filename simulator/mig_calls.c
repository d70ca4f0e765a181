/* Which calls MIG takes away: those that a MIG device does not answer, and those that a GPU in MIG mode does not. */
#include <string.h>

#include "world.h"

static bool is_one_of(const char *call, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(call, *list)) return true;
    return false;
}

bool mig_accepts(const char *call) {
    static const char *const CALLS[] = {
        "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetAttributes", "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId",
        "nvmlDeviceIsMigDeviceHandle", "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", "nvmlDeviceGetBAR1MemoryInfo",
        "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetIndex", NULL};
    return is_one_of(call, CALLS);
}

bool mig_hides(const char *call) {
    static const char *const CALLS[] = {
        "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetEncoderUtilization", "nvmlDeviceGetDecoderUtilization",
        "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo", NULL};
    return is_one_of(call, CALLS);
}
