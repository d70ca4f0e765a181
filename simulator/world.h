/* The simulated world: what a scenario file says, and the session that a process has with it. */
#ifndef SIMULATOR_WORLD_H
#define SIMULATOR_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "nvml.h"

/* What may stand behind `value` in a scenario. What a GPU has no value for, it does not support. */
#define KEYS(X) \
    X(memory_total_bytes) X(memory_used_bytes) X(memory_reserved_bytes) X(utilization_pct) X(memory_bandwidth_pct) \
    X(power_w) X(power_limit_w) X(power_management_limit_w) X(temperature_c) X(memory_temperature_c) \
    X(sm_clock_mhz) X(memory_clock_mhz) X(graphics_clock_mhz) X(video_clock_mhz) X(throttle_reasons) \
    X(encoder_pct) X(decoder_pct) X(sampling_period_us) X(fan_pct) X(performance_state) \
    X(pcie_tx_bytes_s) X(pcie_rx_bytes_s) X(nvlink_tx_bytes_s) X(nvlink_rx_bytes_s) X(nvlink_links) \
    X(engine_active_pct) X(sm_active_pct) X(sm_occupancy_pct) X(tensor_active_pct) X(hmma_active_pct) X(dram_active_pct) \
    X(fp64_active_pct) X(fp32_active_pct) X(fp16_active_pct) \
    X(energy_mj) X(ecc_corrected) X(ecc_uncorrected) X(ecc_corrected_volatile) X(ecc_uncorrected_volatile) \
    X(retired_pages_sbe) X(retired_pages_dbe) X(retired_pages_pending) \
    X(remapped_rows_corrected) X(remapped_rows_uncorrected) X(remapped_rows_pending) X(remapped_rows_failed) \
    X(pcie_replays) X(pcie_generation) X(pcie_generation_max) X(pcie_width) X(pcie_width_max) \
    X(nvlink_crc_errors) X(nvlink_replays) X(nvlink_recoveries) X(mig_mode) X(mig_devices_max)

typedef enum {
#define X(name) KEY_##name,
    KEYS(X)
#undef X
    KEY_COUNT
} key;

typedef struct curve curve;
curve *curve_parse(char **words); /* NULL where it is none; the words are strtok_r's state */
double curve_at(const curve *, double seconds, bool held, unsigned seed);
void curve_free(curve *);

typedef struct { char call[64]; uint code; uint delay_ms; } rule;
typedef struct { double at; ullong type, data; } event;
typedef struct {
    uint pid;
    ullong memory;
    uint sm, memory_pct, encoder, decoder;
    bool graphics;
    uint gpu_instance, compute_instance;
} process;

typedef struct gpu {
    char uuid[96], name[96];
    int parent;   /* of a MIG device: its GPU's place in the world; else -1 */
    uint index;   /* among the GPUs, or among its parent's MIG devices */
    bool removed, visible, gpm;
    uint gpu_instance, compute_instance, gpu_slices, compute_slices, multiprocessors;
    uint compute_major, compute_minor, architecture, bus, minor;
    curve *values[KEY_COUNT];
    rule *rules; size_t rule_count;
    event *events; size_t event_count;
    process *processes; size_t process_count;
} gpu;

typedef struct {
    double start; /* Unix time at which every curve begins */
    char driver[80], nvml[80];
    int cuda;
    uint init_error, call_error, epoch;
    gpu *gpus; size_t gpu_count;
} world;

world *world_read(const char *path); /* NULL, and the line said on stderr, for what is no scenario */
void world_free(world *);

double now(void); /* Unix time */
void pause_ms(uint);

/* Entering a call: takes the lock, reads a changed scenario, and answers what the scenario orders for this call.
   Only where it returns NVML_SUCCESS the lock is held; `leave` gives it back. */
nvml_code enter_library(const char *call, world **);
nvml_code enter(device *, const char *call, gpu **);
nvml_code leave(nvml_code);
nvml_code refusal(const gpu *, const char *call); /* what the rules say about `call`, which may be "field:82" or "gpm:5" too */
world *current_world(void);
device *device_of(const gpu *); /* its handle, the same for as long as the process lives */
gpu *gpu_of(const device *);
bool has(const gpu *, key);
double value(const gpu *, key);
nvml_code number(const gpu *, key, uint *);
double grown(const gpu *, key rate, double factor, double first); /* a counter that grows at `rate` times `factor` a second */

/* The processes of this machine that were given a GPU, at most `most`; how many. Only with the session's lock held. */
size_t holders_of(const gpu *, uint *pids, size_t most);
bool is_held(const world *, const gpu *); /* by one of these, or by one of the scenario's own list; of a GPU, its MIG devices too */

/* The processes on a GPU or MIG device, at most `most`; how many there are. */
size_t processes_of(const gpu *, process *found, size_t most);
#define MOST_PROCESSES 256

bool mig_accepts(const char *call);   /* of a MIG device's handle */
bool mig_hides(const char *call);     /* from a GPU in MIG mode */

#endif
