"""The only package that calls NVML. `gpu_inventory` decides when devices are read, lost and found again."""
