/* Event sets: an event of the scenario reaches every set that was registered for its GPU before it happened. */
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define LOOK_EVERY_MS 40
#define MOST_DELIVERED 1024

typedef struct watch { device *device; ullong types; double since; struct watch *next; } watch;
struct event_set {
    watch *watches;
    struct { device *device; event event; } delivered[MOST_DELIVERED];
    size_t count;
};

API nvml_code nvmlEventSetCreate(event_set **into) {
    *into = calloc(1, sizeof **into);
    return *into ? NVML_SUCCESS : NVML_MEMORY;
}

API nvml_code nvmlEventSetFree(event_set *set) {
    while (set->watches) {
        watch *gone = set->watches;
        set->watches = gone->next;
        free(gone);
    }
    free(set);
    return NVML_SUCCESS;
}

API nvml_code nvmlDeviceGetSupportedEventTypes(device *handle, ullong *into) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    *into = 0xf9f;
    return leave(NVML_SUCCESS);
}

API nvml_code nvmlDeviceRegisterEvents(device *handle, ullong types, event_set *set) {
    gpu *one;
    nvml_code code = enter(handle, __func__, &one);
    if (code) return code;
    watch *made = calloc(1, sizeof *made);
    if (!made) return leave(NVML_MEMORY);
    *made = (watch){handle, types, now(), set->watches};
    set->watches = made;
    return leave(NVML_SUCCESS);
}

static bool was_delivered(const event_set *set, const device *handle, const event *found) {
    for (size_t i = 0; i < set->count && i < MOST_DELIVERED; i++) {
        const event *known = &set->delivered[i].event;
        bool same = known->at == found->at && known->type == found->type && known->data == found->data;
        if (same && set->delivered[i].device == handle) return true;
    }
    return false;
}

static bool deliver(event_set *set, watch *one, const gpu *here, event_data *into) {
    for (size_t i = 0; i < here->event_count; i++) {
        const event *found = &here->events[i];
        if (!(found->type & one->types) || found->at < one->since || found->at > now()) continue;
        if (was_delivered(set, one->device, found)) continue;
        set->delivered[set->count % MOST_DELIVERED].device = one->device;
        set->delivered[set->count % MOST_DELIVERED].event = *found;
        set->count++;
        *into = (event_data){one->device, found->type, found->data, ~0u, ~0u};
        return true;
    }
    return false;
}

/* An event that happened, or what ails a registered GPU; NVML_TIMEOUT while nothing is to be told. */
static nvml_code look(event_set *set, event_data *into) {
    bool lost = false;
    for (watch *one = set->watches; one; one = one->next) {
        const gpu *here = gpu_of(one->device);
        if (here && deliver(set, one, here, into)) return NVML_SUCCESS;
        lost = lost || !here || here->removed;
    }
    return lost ? NVML_GPU_IS_LOST : NVML_TIMEOUT;
}

API nvml_code nvmlEventSetWait_v2(event_set *set, event_data *into, uint timeout_ms) {
    for (uint waited = 0;; waited += LOOK_EVERY_MS) {
        world *here;
        nvml_code code = enter_library(__func__, &here);
        if (code) return code;
        code = leave(look(set, into));
        if (code != NVML_TIMEOUT || waited >= timeout_ms) return code;
        pause_ms(timeout_ms - waited < LOOK_EVERY_MS ? timeout_ms - waited : LOOK_EVERY_MS);
    }
}

API nvml_code nvmlEventSetWait(event_set *set, event_data *into, uint timeout_ms) {
    return nvmlEventSetWait_v2(set, into, timeout_ms);
}
