/* Reads a scenario file: one word and its arguments a line; `gpu` and `mig` open a device that the lines after them describe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define HEADER "nvml-simulator 1"
#define LONGEST_LINE 65536

static const char *NAMES[KEY_COUNT] = {
#define X(name) #name,
    KEYS(X)
#undef X
};

static bool put(char *into, size_t size, const char *text) {
    return text && *text && snprintf(into, size, "%s", text) < (int)size;
}

static bool whole(char **words, uint *found) {
    char *word = strtok_r(NULL, " \t", words), *end;
    if (!word) return false;
    *found = (uint)strtoul(word, &end, 0);
    return !*end;
}

static void *grow(void *items, size_t *count, size_t size) {
    char *grown = realloc(items, (*count + 1) * size);
    if (!grown) abort();
    memset(grown + *count * size, 0, size);
    *count += 1;
    return grown;
}

static bool open_device(world *made, const char *uuid, bool mig) {
    int parent = -1;
    uint index = 0;
    for (size_t i = 0; i < made->gpu_count; i++)
        if (made->gpus[i].parent < 0) {
            parent = (int)i;
            index++;
        }
    if (mig && parent < 0) return false;
    if (mig) {
        index = 0;
        for (size_t i = 0; i < made->gpu_count; i++) index += made->gpus[i].parent == parent;
    }
    made->gpus = grow(made->gpus, &made->gpu_count, sizeof(gpu));
    gpu *opened = &made->gpus[made->gpu_count - 1];
    opened->parent = mig ? parent : -1;
    opened->index = opened->minor = index;
    opened->bus = 0x10 + index;
    opened->visible = mig && made->gpus[parent].visible;
    return put(opened->uuid, sizeof opened->uuid, uuid);
}

static bool read_value(gpu *one, char **words) {
    char *name = strtok_r(NULL, " \t", words);
    for (int k = 0; name && k < KEY_COUNT; k++)
        if (!strcmp(name, NAMES[k])) {
            curve_free(one->values[k]);
            return (one->values[k] = curve_parse(words)) != NULL;
        }
    return false;
}

static bool read_rule(gpu *one, char **words, uint code, bool delay) {
    char *call = strtok_r(NULL, " \t", words);
    one->rules = grow(one->rules, &one->rule_count, sizeof(rule));
    rule *made = &one->rules[one->rule_count - 1];
    made->code = code;
    if (!put(made->call, sizeof made->call, call)) return false;
    if (delay) return whole(words, &made->delay_ms);
    return code || whole(words, &made->code);
}

static bool read_event(gpu *one, char **words) {
    char *at = strtok_r(NULL, " \t", words);
    uint type, data;
    if (!at || !whole(words, &type) || !whole(words, &data)) return false;
    one->events = grow(one->events, &one->event_count, sizeof(event));
    one->events[one->event_count - 1] = (event){strtod(at, NULL), type, data};
    return true;
}

/* process PID MEMORY SM MEMORY_PCT ENCODER DECODER compute|graphics [GPU_INSTANCE COMPUTE_INSTANCE]; MEMORY - = cannot be told */
static bool read_process(gpu *one, char **words) {
    one->processes = grow(one->processes, &one->process_count, sizeof(process));
    process *made = &one->processes[one->process_count - 1];
    if (!whole(words, &made->pid)) return false;
    char *memory = strtok_r(NULL, " \t", words);
    if (!memory) return false;
    made->memory = strcmp(memory, "-") ? strtoull(memory, NULL, 10) : ~0ull;
    if (!whole(words, &made->sm) || !whole(words, &made->memory_pct)) return false;
    if (!whole(words, &made->encoder) || !whole(words, &made->decoder)) return false;
    char *kind = strtok_r(NULL, " \t", words);
    made->graphics = kind && !strcmp(kind, "graphics");
    made->gpu_instance = made->compute_instance = one->parent < 0 ? ~0u : one->gpu_instance;
    if (one->parent >= 0) made->compute_instance = one->compute_instance;
    return kind != NULL;
}

static bool read_device_line(gpu *one, const char *word, char *rest, char **words) {
    if (!strcmp(word, "name")) return put(one->name, sizeof one->name, rest);
    if (!strcmp(word, "value")) return read_value(one, words);
    if (!strcmp(word, "unsupported")) return read_rule(one, words, NVML_NOT_SUPPORTED, false);
    if (!strcmp(word, "error")) return read_rule(one, words, 0, false);
    if (!strcmp(word, "delay")) return read_rule(one, words, 0, true);
    if (!strcmp(word, "event")) return read_event(one, words);
    if (!strcmp(word, "process")) return read_process(one, words);
    if (!strcmp(word, "visible")) return one->visible = true;
    if (!strcmp(word, "removed")) return one->removed = true;
    if (!strcmp(word, "gpm")) return one->gpm = true;
    if (!strcmp(word, "bus")) return whole(words, &one->bus);
    if (!strcmp(word, "minor")) return whole(words, &one->minor);
    if (!strcmp(word, "architecture")) return whole(words, &one->architecture);
    if (!strcmp(word, "multiprocessors")) return whole(words, &one->multiprocessors);
    if (!strcmp(word, "compute")) return whole(words, &one->compute_major) && whole(words, &one->compute_minor);
    if (!strcmp(word, "instance")) return whole(words, &one->gpu_instance) && whole(words, &one->compute_instance);
    if (!strcmp(word, "slices")) return whole(words, &one->gpu_slices) && whole(words, &one->compute_slices);
    return false;
}

static bool read_line(world *made, char *line) {
    char *words, copy[LONGEST_LINE];
    snprintf(copy, sizeof copy, "%s", line);
    char *word = strtok_r(copy, " \t", &words);
    if (!word || *word == '#') return true;
    char *rest = line + (word - copy) + strlen(word);
    rest += strspn(rest, " \t");
    if (!strcmp(word, "gpu") || !strcmp(word, "mig")) return open_device(made, strtok_r(NULL, " \t", &words), *word == 'm');
    if (made->gpu_count) return read_device_line(&made->gpus[made->gpu_count - 1], word, rest, &words);
    uint cuda = 0;
    if (!strcmp(word, "start")) return (made->start = strtod(rest, NULL)) > 0;
    if (!strcmp(word, "driver")) return put(made->driver, sizeof made->driver, rest);
    if (!strcmp(word, "nvml")) return put(made->nvml, sizeof made->nvml, rest);
    if (!strcmp(word, "cuda")) return whole(&words, &cuda) && (made->cuda = (int)cuda) >= 0;
    if (!strcmp(word, "init_error")) return whole(&words, &made->init_error);
    if (!strcmp(word, "call_error")) return whole(&words, &made->call_error);
    if (!strcmp(word, "epoch")) return whole(&words, &made->epoch);
    return false;
}

static bool read_all(world *made, FILE *file, const char *path) {
    static char line[LONGEST_LINE]; /* only ever read under the session's lock */
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        line[strcspn(line, "\r\n")] = 0;
        if (number == 1 ? strcmp(line, HEADER) != 0 : !read_line(made, line)) {
            fprintf(stderr, "NVML simulator: line %d of %s is not understood: %s\n", number, path, line);
            return false;
        }
    }
    return true;
}

world *world_read(const char *path) {
    FILE *file = fopen(path, "re");
    if (!file) {
        fprintf(stderr, "NVML simulator: the scenario %s cannot be read\n", path);
        return NULL;
    }
    world *made = calloc(1, sizeof *made);
    bool good = made && read_all(made, file, path);
    fclose(file);
    if (good) return made;
    world_free(made);
    return NULL;
}

void world_free(world *made) {
    for (size_t i = 0; made && i < made->gpu_count; i++) {
        for (int k = 0; k < KEY_COUNT; k++) curve_free(made->gpus[i].values[k]);
        free(made->gpus[i].rules);
        free(made->gpus[i].events);
        free(made->gpus[i].processes);
    }
    if (made) free(made->gpus);
    free(made);
}
