"""Names of the logs of an attempt, which node and hub must agree on. Their numbers put them in the order in
which they are written, as in Azure ML.

No enum: the supervisor of an attempt imports this module, and `enum` would delay every rank."""

from __future__ import annotations

ENVIRONMENT_LOG = "20_environment_build_log.txt"
# Not a log: the packages that the ranks really have. It travels like a log, and pages show it elsewhere.
PACKAGES_FILE = "30_installed_packages.json"
PREPARATION_LOG = "55_preparation_log.txt"
LAUNCHER_LOG = "60_launcher_log.txt"
# What one rank prints: DRIVER_LOG + ".txt" in a run of one process, else with the rank's suffix.
DRIVER_LOG = "70_driver_log"
