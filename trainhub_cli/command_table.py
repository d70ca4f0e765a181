"""All commands: where each is, and what it does in a line. So that `trainhub --help` loads none of them."""

from __future__ import annotations

from typing import NamedTuple

PROGRAM = "trainhub"
COMPLETION_VARIABLE = "_TRAINHUB_COMPLETE"


class CommandEntry(NamedTuple):
    """`module`: below `trainhub_cli.commands`; `attribute`: the name of the command in it."""

    module: str
    attribute: str
    help: str


# Group: its commands, in the order of the help.
COMMANDS: dict[str, dict[str, CommandEntry]] = {
    "Runs": {
        "submit": CommandEntry("submit", "submit", "Submit a run of the code in a folder."),
        "ls": CommandEntry("run_list", "list_runs", "List runs, the newest first."),
        "show": CommandEntry("run_details", "show_run", "Show a run: state, cause, files, metrics."),
        "logs": CommandEntry("run_logs", "show_logs", "Print or follow the logs of a run."),
        "wait": CommandEntry("run_actions", "wait_for_runs", "Wait for runs to end."),
        "stop": CommandEntry("run_actions", "stop_runs", "Stop runs."),
        "clone": CommandEntry("submit", "clone", "Submit the same run again, perhaps changed."),
        "events": CommandEntry("run_details", "list_events", "List what has happened to a run."),
        "metrics": CommandEntry("metrics", "list_metrics", "List the metrics of a run."),
        "compare": CommandEntry("metrics", "compare", "Show the metrics of runs side by side."),
        "export": CommandEntry("spec_formats", "export_command", "Write a run for another launcher."),
        "files": CommandEntry("files", "files", "List and download the files that a run has left."),
        "open": CommandEntry("run_details", "open_page", "Open the page of a run in the browser."),
    },
    "The hub": {
        "models": CommandEntry("models", "models", "List, download and register models."),
        "env": CommandEntry("catalog", "environments", "List environments."),
        "data": CommandEntry("catalog", "datasets", "List and upload datasets."),
        "nodes": CommandEntry("machines", "list_nodes", "List the machines."),
        "clusters": CommandEntry("machines", "list_clusters", "List the clusters, with their free GPUs."),
        "gpus": CommandEntry("machines", "list_gpus", "List the GPUs, with what they do now."),
        "slurm": CommandEntry("slurm", "slurm", "Enter, show and remove your tokens for a Slurm."),
        "usage": CommandEntry("usage", "list_usage", "List what runs have used: GPU-hours, energy."),
    },
    "Moving here": {
        "import": CommandEntry(
            "spec_formats", "import_command", "Make a spec of a file of another launcher."
        ),
        "azureml": CommandEntry("azureml", "azureml", "Run or check scripts of the Azure ML SDK v1."),
    },
    "This program": {
        "login": CommandEntry("sign_in", "sign_in", "Sign in to a hub."),
        "logout": CommandEntry("sign_in", "sign_out", "Forget a hub and its token."),
        "whoami": CommandEntry("sign_in", "show_identity", "Show who you are on the hub."),
        "profile": CommandEntry("profiles", "profiles", "List, choose and remove profiles."),
        "completion": CommandEntry("completion", "print_completion", "Print the completion for a shell."),
    },
}
ALIASES = {"runs": "ls"}


def all_entries() -> dict[str, CommandEntry]:
    return {name: entry for commands in COMMANDS.values() for name, entry in commands.items()}
