/* One process's session with the simulated driver: the lock, the scenario as it stands now, handles, and what every call is told. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "world.h"

/* Outlives every re-reading of the scenario: a handle stays what it was. */
struct device {
    char uuid[96];
    struct { double value, at; } grown[KEY_COUNT];
    device *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static world *present;
static device *devices;
static struct stat read_as;
static uint inits, epoch;

/* Takes up a scenario that was replaced; one that is not understood leaves the world as it was. */
static void refresh(void) {
    const char *path = getenv("NVML_SIMULATOR");
    struct stat found;
    if (!path || stat(path, &found)) return;
    bool same = found.st_ino == read_as.st_ino && found.st_size == read_as.st_size && found.st_dev == read_as.st_dev &&
                found.st_mtim.tv_sec == read_as.st_mtim.tv_sec && found.st_mtim.tv_nsec == read_as.st_mtim.tv_nsec;
    if (same) return;
    read_as = found;
    world *made = world_read(path);
    if (!made) return;
    world_free(present);
    present = made;
}

static void take(void) {
    pthread_mutex_lock(&lock);
    refresh();
}

nvml_code leave(nvml_code code) {
    pthread_mutex_unlock(&lock);
    return code;
}

world *current_world(void) { return present; }

static nvml_code opened(void) {
    if (!inits || !present || present->epoch != epoch) return NVML_UNINITIALIZED;
    return present->call_error;
}

nvml_code enter_library(const char *call, world **found) {
    (void)call;
    take();
    nvml_code code = opened();
    if (code) return leave(code);
    *found = present;
    return NVML_SUCCESS;
}

gpu *gpu_of(const device *handle) {
    for (size_t i = 0; present && i < present->gpu_count; i++)
        if (!strcmp(present->gpus[i].uuid, handle->uuid)) return &present->gpus[i];
    return NULL;
}

static bool is_known(const device *handle) {
    for (device *one = devices; one; one = one->next)
        if (one == handle) return true;
    return false;
}

static bool is_lost(const gpu *one) { return one->removed || (one->parent >= 0 && present->gpus[one->parent].removed); }

/* "nvmlDeviceGetHandleByIndex_v2" is named with or without its version. */
static bool is_named(const char *rule, const char *call) {
    size_t length = strlen(rule);
    if (strncmp(rule, call, length)) return false;
    return !call[length] || (call[length] == '_' && call[length + 1] == 'v' && strlen(call + length) == 3);
}

nvml_code refusal(const gpu *one, const char *call) {
    for (size_t i = 0; i < one->rule_count; i++)
        if (one->rules[i].code && is_named(one->rules[i].call, call)) return one->rules[i].code;
    return NVML_SUCCESS;
}

static uint delay(const gpu *one, const char *call) {
    for (size_t i = 0; i < one->rule_count; i++)
        if (one->rules[i].delay_ms && is_named(one->rules[i].call, call)) return one->rules[i].delay_ms;
    return 0;
}

static nvml_code answer(device *handle, const char *call, gpu **found) {
    nvml_code code = opened();
    if (code) return code;
    if (!handle || !is_known(handle)) return NVML_INVALID_ARGUMENT;
    gpu *one = *found = gpu_of(handle);
    if (!one || is_lost(one)) return NVML_GPU_IS_LOST;
    if ((code = refusal(one, call))) return code;
    if (one->parent < 0) return has(one, KEY_mig_mode) && value(one, KEY_mig_mode) >= 1 && mig_hides(call) ? NVML_NOT_SUPPORTED : 0;
    if (mig_accepts(call)) return NVML_SUCCESS;
    return mig_hides(call) ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT;
}

nvml_code enter(device *handle, const char *call, gpu **found) {
    take();
    gpu *slow = handle && is_known(handle) ? gpu_of(handle) : NULL;
    uint wait = slow ? delay(slow, call) : 0;
    if (wait) {
        leave(NVML_SUCCESS);
        pause_ms(wait);
        take();
    }
    nvml_code code = answer(handle, call, found);
    return code ? leave(code) : NVML_SUCCESS;
}

device *device_of(const gpu *one) {
    for (device *known = devices; known; known = known->next)
        if (!strcmp(known->uuid, one->uuid)) return known;
    device *made = calloc(1, sizeof *made);
    if (!made) abort();
    snprintf(made->uuid, sizeof made->uuid, "%s", one->uuid);
    made->next = devices;
    return devices = made;
}

bool has(const gpu *one, key which) { return one->values[which] != NULL; }

static unsigned seed_of(const gpu *one, key which) {
    unsigned seed = (unsigned)which + 1;
    for (const char *letter = one->uuid; *letter; letter++) seed = seed * 31 + (unsigned char)*letter;
    return seed;
}

double value(const gpu *one, key which) {
    const curve *found = one->values[which];
    return found ? curve_at(found, now() - present->start, is_held(present, one), seed_of(one, which)) : 0;
}

nvml_code number(const gpu *one, key which, uint *found) {
    if (!has(one, which)) return NVML_NOT_SUPPORTED;
    *found = (uint)(value(one, which) + 0.5);
    return NVML_SUCCESS;
}

/* From the scenario's start on at first, then by what the rate is at each look: it never goes back. */
double grown(const gpu *one, key rate, double factor, double first) {
    device *handle = device_of(one);
    double moment = now(), speed = value(one, rate);
    double since = handle->grown[rate].at ? handle->grown[rate].at : present->start;
    if (moment > since) handle->grown[rate].value += speed * (moment - since);
    handle->grown[rate].at = moment > since ? moment : since;
    return first + handle->grown[rate].value * factor;
}

API nvml_code nvmlInitWithFlags(uint flags) {
    (void)flags;
    take();
    if (!present) return leave(NVML_UNKNOWN);
    if (present->init_error) return leave(present->init_error);
    if (!inits || epoch == present->epoch) inits++;
    epoch = present->epoch;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API nvml_code nvmlInit(void) { return nvmlInitWithFlags(0); }

API nvml_code nvmlShutdown(void) {
    take();
    if (!inits) return leave(NVML_UNINITIALIZED);
    inits--;
    return leave(NVML_SUCCESS);
}
