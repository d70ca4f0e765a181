"""The fleet as Prometheus reads it: GPUs under the names of NVIDIA's DCGM exporter, with who holds them;
nodes, runs, alerts.

docs/prometheus.md lists it, with a dashboard and alert rules.
"""
