/* What concerns the driver as a whole: versions, how many GPUs, and their handles. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "world.h"

static nvml_code say(const char *text, char *into, uint size) {
    return into && snprintf(into, size, "%s", text) < (int)size ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}

API nvml_code nvmlSystemGetDriverVersion(char *into, uint size) {
    world *here;
    nvml_code code = enter_library(__func__, &here);
    return code ? code : leave(say(here->driver, into, size));
}

API nvml_code nvmlSystemGetNVMLVersion(char *into, uint size) {
    world *here;
    nvml_code code = enter_library(__func__, &here);
    return code ? code : leave(say(here->nvml, into, size));
}

API nvml_code nvmlSystemGetCudaDriverVersion(int *into) {
    world *here;
    nvml_code code = enter_library(__func__, &here);
    if (code) return code;
    *into = here->cuda;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlSystemGetCudaDriverVersion_v2(int *into) { return nvmlSystemGetCudaDriverVersion(into); }

API nvml_code nvmlSystemGetProcessName(uint pid, char *into, uint size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t length = readlink(path, into, size - 1);
    if (length < 0) return NVML_NOT_FOUND;
    into[length] = 0;
    return NVML_SUCCESS;
}

API nvml_code nvmlDeviceGetCount_v2(uint *into) {
    world *here;
    nvml_code code = enter_library(__func__, &here);
    if (code) return code;
    *into = 0;
    for (size_t i = 0; i < here->gpu_count; i++) *into += here->gpus[i].parent < 0;
    return leave(NVML_SUCCESS);
}

static nvml_code handle_of(const gpu *one, device **into) {
    if (one->removed) return NVML_GPU_IS_LOST;
    *into = device_of(one);
    return NVML_SUCCESS;
}

API nvml_code nvmlDeviceGetHandleByIndex_v2(uint index, device **into) {
    world *here;
    nvml_code code = enter_library(__func__, &here);
    if (code) return code;
    for (size_t i = 0; i < here->gpu_count; i++) {
        const gpu *one = &here->gpus[i];
        if (one->parent >= 0 || one->index != index) continue;
        code = refusal(one, __func__);
        return leave(code ? code : handle_of(one, into));
    }
    return leave(NVML_INVALID_ARGUMENT);
}

API nvml_code nvmlDeviceGetHandleByUUID(const char *uuid, device **into) {
    world *here;
    nvml_code code = enter_library(__func__, &here);
    if (code) return code;
    for (size_t i = 0; i < here->gpu_count; i++)
        if (!strcmp(here->gpus[i].uuid, uuid)) return leave(handle_of(&here->gpus[i], into));
    return leave(NVML_NOT_FOUND);
}

API nvml_code nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, device **into) {
    world *here;
    nvml_code code = enter_library(__func__, &here);
    if (code) return code;
    for (size_t i = 0; i < here->gpu_count; i++) {
        char own[32];
        snprintf(own, sizeof own, "00000000:%02X:00.0", here->gpus[i].bus);
        if (here->gpus[i].parent < 0 && !strcasecmp(own, bus_id)) return leave(handle_of(&here->gpus[i], into));
    }
    return leave(NVML_NOT_FOUND);
}

API const char *nvmlErrorString(uint code) {
    switch (code) {
    case NVML_SUCCESS: return "Success";
    case NVML_UNINITIALIZED: return "Uninitialized";
    case NVML_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case NVML_NOT_FOUND: return "Not Found";
    case NVML_INSUFFICIENT_SIZE: return "Insufficient Size";
    case 9: return "Driver Not Loaded";
    case NVML_TIMEOUT: return "Timeout";
    case NVML_GPU_IS_LOST: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}
