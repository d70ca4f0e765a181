/* Who was given a GPU: every process of this machine in whose environment its UUID stands. */
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

size_t holders_of(const gpu *one, uint *pids, size_t most) {
    size_t count = 0;
    scan();
    for (size_t i = 0; i < seen_count && count < most; i++)
        if (strstr(seen[i].gpus, one->uuid)) pids[count++] = seen[i].pid;
    return count;
}

bool is_held(const world *here, const gpu *one) {
    uint pid;
    if (one->process_count || (one->visible && holders_of(one, &pid, 1))) return true;
    for (size_t i = 0; one->parent < 0 && i < here->gpu_count; i++) {
        const gpu *part = &here->gpus[i];
        if (part->parent >= 0 && &here->gpus[part->parent] == one && is_held(here, part)) return true;
    }
    return false;
}
