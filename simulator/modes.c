/* How a GPU is set up: what monitors ask for besides, the same for every GPU here. */
#include "world.h"

static nvml_code tell(device *handle, const char *call, uint setting, uint *into) {
    gpu *one;
    nvml_code code = enter(handle, call, &one);
    if (code) return code;
    *into = setting;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceGetComputeMode(device *handle, uint *into) { return tell(handle, __func__, 0, into); }
API nvml_code nvmlDeviceGetPersistenceMode(device *handle, uint *into) { return tell(handle, __func__, 1, into); }
API nvml_code nvmlDeviceGetDisplayActive(device *handle, uint *into) { return tell(handle, __func__, 0, into); }
API nvml_code nvmlDeviceGetDisplayMode(device *handle, uint *into) { return tell(handle, __func__, 1, into); }
API nvml_code nvmlDeviceGetBrand(device *handle, uint *into) { return tell(handle, __func__, 2, into); }

/* Of Windows alone. */
API nvml_code nvmlDeviceGetDriverModel_v2(device *handle, uint *present, uint *pending) {
    gpu *one;
    (void)present, (void)pending;
    nvml_code code = enter(handle, __func__, &one);
    return code ? code : leave(NVML_NOT_SUPPORTED);
}
