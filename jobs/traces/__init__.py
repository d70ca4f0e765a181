"""The road of a run through the hub and its nodes as an OpenTelemetry trace, sent once the run is over."""
