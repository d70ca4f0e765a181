/* The part of NVML's ABI that the simulator speaks. Layouts follow the structures of nvidia-ml-py 13.615. */
#ifndef SIMULATOR_NVML_H
#define SIMULATOR_NVML_H

#include <stdint.h>

#define API __attribute__((visibility("default")))

typedef unsigned int uint;
typedef unsigned long long ullong;

typedef enum {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
    NVML_MEMORY = 20,
    NVML_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_UNKNOWN = 999,
} nvml_code;

typedef struct device device; /* what a nvmlDevice_t points to */
typedef struct event_set event_set;
typedef struct gpm_sample gpm_sample;

typedef struct { ullong total, free, used; } memory_v1;
typedef struct { uint version; ullong total, reserved, free, used; } memory_v2;
typedef struct { uint gpu, memory; } utilization;
typedef struct { uint version, sensor; int temperature; } temperature_v1;
typedef struct { uint pid; ullong memory; uint gpu_instance, compute_instance; } process_info;
typedef struct { uint pid; ullong at_us; uint sm, memory, encoder, decoder; } process_sample;
typedef struct { ullong at_us; uint pid, sm, memory, encoder, decoder, jpeg, ofa; } process_sample_v1;
typedef struct { uint version, count; ullong last_seen_us; process_sample_v1 *samples; } process_samples_v1;
typedef union { double real; uint ui; ullong ull; long long sll; int si; } field_number;
typedef struct {
    uint field, scope;
    int64_t at_us, latency_us;
    uint type, code;
    field_number value;
} field_value;
typedef struct { device *device; ullong type, data; uint gpu_instance, compute_instance; } event_data;
typedef struct { char bus_id_legacy[16]; uint domain, bus, device, device_id, subsystem_id; char bus_id[32]; } pci_info;
typedef struct {
    uint multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
    ullong memory_mib;
} attributes;
typedef struct { ullong total, free, used; } bar1_memory;
typedef struct { ullong reference_us, violation_ns; } violation_time;
typedef struct { uint id, code; double value; const char *short_name, *long_name, *unit; } gpm_metric;
typedef struct { uint version, count; gpm_sample *first, *second; gpm_metric metrics[]; } gpm_request;
typedef struct { uint version, supported; } gpm_support;

#define MEMORY_V2 0x02000028u
#define TEMPERATURE_V1 0x0100000cu
#define PROCESS_SAMPLES_V1 0x01000018u

_Static_assert(sizeof(memory_v2) == 40 && sizeof(process_info) == 24 && sizeof(process_sample) == 32, "NVML's layout");
_Static_assert(sizeof(field_value) == 40 && sizeof(event_data) == 32 && sizeof(pci_info) == 68, "NVML's layout");
_Static_assert(sizeof(attributes) == 40 && sizeof(gpm_metric) == 40 && sizeof(gpm_request) == 24, "NVML's layout");
_Static_assert(sizeof(process_sample_v1) == 40 && sizeof(process_samples_v1) == 24, "NVML's layout");

#endif
