/* Who is on a GPU: the scenario's own list, or every process of this machine that was given the GPU's UUID. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

#define SCAN_EVERY_S 0.5
#define LARGEST_ENVIRON 65536
#define SAMPLES_EVERY_US 200000
#define VISIBLE "CUDA_VISIBLE_DEVICES="

static struct { uint pid; char gpus[2048]; } *seen; /* guarded by the session's lock, like everything here */
static size_t seen_count;
static double scanned_at;

static ssize_t read_file(const char *path, char *into, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    size_t length = 0;
    ssize_t part;
    while (length < size - 1 && (part = read(file, into + length, size - 1 - length)) > 0) length += (size_t)part;
    close(file);
    into[length] = 0;
    return (ssize_t)length;
}

static const char *variable(const char *environ, ssize_t length, const char *name) {
    for (const char *entry = environ; entry < environ + length; entry += strlen(entry) + 1)
        if (!strncmp(entry, name, strlen(name))) return entry + strlen(name);
    return NULL;
}

/* The GPUs that a process was given; of several only its own, where it is told its place among the processes of its node. */
static const char *given_gpus(char *environ, ssize_t length) {
    char *gpus = (char *)variable(environ, length, VISIBLE);
    const char *place = variable(environ, length, "LOCAL_RANK=");
    if (!place) place = variable(environ, length, "OMPI_COMM_WORLD_LOCAL_RANK=");
    char *own = gpus;
    for (long skip = place ? strtol(place, NULL, 10) : 0; own && skip > 0; skip--) {
        own = strchr(own, ',');
        if (own) own++;
    }
    if (!gpus || !place || !own) return gpus;
    own[strcspn(own, ",")] = 0;
    return own;
}

/* The agent's own wrappers hand the GPUs on and never open them. */
static bool is_wrapper(const char *pid) {
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%.20s/cmdline", pid);
    ssize_t length = read_file(path, line, sizeof line);
    return length <= 0 || memmem(line, (size_t)length, "trainhub_node", 13);
}

static void remember(const char *pid, const char *gpus) {
    if (!strstr(gpus, "GPU-") && !strstr(gpus, "MIG-")) return;
    if (is_wrapper(pid)) return;
    void *more = realloc(seen, (seen_count + 1) * sizeof *seen);
    if (!more) abort();
    seen = more;
    seen[seen_count].pid = (uint)strtoul(pid, NULL, 10);
    snprintf(seen[seen_count].gpus, sizeof seen->gpus, "%s", gpus);
    seen_count++;
}

static void scan(void) {
    static char environ[LARGEST_ENVIRON];
    double moment = now();
    if (moment >= scanned_at && moment - scanned_at < SCAN_EVERY_S) return;
    scanned_at = moment;
    seen_count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[64];
        if (!isdigit((unsigned char)*entry->d_name)) continue;
        snprintf(path, sizeof path, "/proc/%.20s/environ", entry->d_name);
        ssize_t length = read_file(path, environ, sizeof environ);
        const char *gpus = length > 0 ? given_gpus(environ, length) : NULL;
        if (gpus) remember(entry->d_name, gpus);
    }
    if (folder) closedir(folder);
}

static size_t visible_on(const gpu *one, uint *pids, size_t most) {
    size_t count = 0;
    scan();
    for (size_t i = 0; i < seen_count && count < most; i++)
        if (strstr(seen[i].gpus, one->uuid)) pids[count++] = seen[i].pid;
    return count;
}

bool is_held(const gpu *one) {
    uint pid;
    if (one->process_count || (one->visible && visible_on(one, &pid, 1))) return true;
    const world *present = current_world();
    for (size_t i = 0; one->parent < 0 && i < present->gpu_count; i++)
        if (present->gpus[i].parent >= 0 && &present->gpus[present->gpus[i].parent] == one && is_held(&present->gpus[i])) return true;
    return false;
}

/* Those that are only seen share what the GPU's curves say. */
static size_t shared_among_visible(const gpu *one, process *found, size_t most) {
    uint pids[MOST_PROCESSES];
    size_t count = visible_on(one, pids, most < MOST_PROCESSES ? most : MOST_PROCESSES);
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
