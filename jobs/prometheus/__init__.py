"""Metrics for Prometheus: GPUs under the names of NVIDIA's DCGM exporter with the runs that hold them, nodes,
runs and alerts.

docs/prometheus.md lists them, with a dashboard and alert rules.
"""
