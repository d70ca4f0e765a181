"""Rules by which a workspace removes logs, outputs, metric points and telemetry of runs that ended long ago."""
