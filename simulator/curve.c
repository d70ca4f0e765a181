/* Values over time, written in prefix order: `noise 3 held sine 90 5 20 constant 0`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define MOST_STEPS 1000

typedef enum { CONSTANT, SINE, RAMP, STEPS, HELD, NOISE } shape;
struct curve {
    shape shape;
    double number[4];
    size_t steps; /* pairs of seconds and value */
    double *step;
    curve *part[2];
};

static bool next_number(char **words, double *found) {
    char *word = strtok_r(NULL, " \t", words), *end;
    if (!word) return false;
    *found = strtod(word, &end);
    return end != word && !*end;
}

static bool read_numbers(char **words, curve *made, int count) {
    for (int i = 0; i < count; i++)
        if (!next_number(words, &made->number[i])) return false;
    return true;
}

static bool read_parts(char **words, curve *made, int count) {
    for (int i = 0; i < count; i++)
        if (!(made->part[i] = curve_parse(words))) return false;
    return true;
}

static bool read_steps(char **words, curve *made) {
    double count;
    if (!next_number(words, &made->number[0]) || !next_number(words, &count) || count < 1 || count > MOST_STEPS) return false;
    made->steps = (size_t)count;
    made->step = calloc(made->steps * 2, sizeof(double));
    for (size_t i = 0; made->step && i < made->steps * 2; i++)
        if (!next_number(words, &made->step[i])) return false;
    return made->step != NULL;
}

static bool read_shape(const char *word, char **words, curve *made) {
    if (!strcmp(word, "constant")) return made->shape = CONSTANT, read_numbers(words, made, 1);
    if (!strcmp(word, "sine")) return made->shape = SINE, read_numbers(words, made, 3);
    if (!strcmp(word, "ramp")) return made->shape = RAMP, read_numbers(words, made, 3);
    if (!strcmp(word, "steps")) return made->shape = STEPS, read_steps(words, made);
    if (!strcmp(word, "held")) return made->shape = HELD, read_parts(words, made, 2);
    if (!strcmp(word, "noise")) return made->shape = NOISE, read_numbers(words, made, 1) && read_parts(words, made, 1);
    return false;
}

curve *curve_parse(char **words) {
    char *word = strtok_r(NULL, " \t", words);
    curve *made = word ? calloc(1, sizeof *made) : NULL;
    if (made && !read_shape(word, words, made)) {
        curve_free(made);
        return NULL;
    }
    return made;
}

void curve_free(curve *made) {
    if (!made) return;
    curve_free(made->part[0]);
    curve_free(made->part[1]);
    free(made->step);
    free(made);
}

/* -1 to 1, the same for the same second and seed in every process. */
static double random_at(double second, unsigned seed) {
    uint64_t mixed = (uint64_t)(int64_t)second * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return (double)((mixed ^ (mixed >> 31)) >> 11) / (double)(1ull << 52) - 1;
}

static double step_at(const curve *made, double seconds) {
    double whole = 0;
    for (size_t i = 0; i < made->steps; i++) whole += made->step[2 * i];
    if (made->number[0] && whole > 0) seconds = fmod(seconds, whole);
    for (size_t i = 0; i < made->steps; i++) {
        if (seconds < made->step[2 * i]) return made->step[2 * i + 1];
        seconds -= made->step[2 * i];
    }
    return made->step[2 * made->steps - 1];
}

static double raw_at(const curve *made, double seconds, bool held, unsigned seed) {
    const double *n = made->number;
    switch (made->shape) {
    case CONSTANT: return n[0];
    case SINE: return n[0] + n[1] * sin(2 * M_PI * seconds / (n[2] > 0 ? n[2] : 1));
    case RAMP: return n[0] + (n[1] - n[0]) * fmin(fmax(n[2] > 0 ? seconds / n[2] : 1, 0), 1);
    case STEPS: return step_at(made, seconds);
    case HELD: return raw_at(made->part[held ? 0 : 1], seconds, held, seed);
    case NOISE: break;
    }
    double second = floor(seconds), share = seconds - second;
    double swing = random_at(second, seed) * (1 - share) + random_at(second + 1, seed) * share;
    return raw_at(made->part[0], seconds, held, seed) + n[0] * swing;
}

double curve_at(const curve *made, double seconds, bool held, unsigned seed) {
    return fmax(raw_at(made, seconds, held, seed), 0); /* nothing that NVML tells goes below zero */
}
