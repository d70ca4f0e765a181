"""The software of a node. It exchanges only `trainhub_launch` values with the hub.

The package has two kinds of modules. `bootstrap`, `supervisor/`, `environments/`, `proc`, `records`,
`rundir`, `attempts/termination` and `untrusted/removal` run under `python -I -S` beside training: they use
only the standard library and, before a rank's first line, import nothing that takes milliseconds (json, re,
signal's enums, subprocess). All other modules belong to the agent: `agent` (the process), `link/` (hub and
wake-ups), `intake/` (checks of what arrives), `attempts/` (tracked attempts), `launch/` (claims, snapshots,
outputs), `machine/`, `gpu/` and `telemetry/` (measurements), `untrusted/` (folders that runs control),
`broker/` (connections to the queue), and `join`, `status`, `systemd`, `settings` and `configuration` for the
command line."""

__version__ = "0.1.0"
