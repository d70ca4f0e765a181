"""`trainhub-node`, which is `python -m trainhub_node`: join a hub, run the agent, show the node's status."""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import sys
import threading
from pathlib import Path

from trainhub_node import __version__, allocation, configuration, join, settings, status, systemd
from trainhub_node.agent import Agent
from trainhub_node.launch import wrapper
from trainhub_node.settings import SettingsError
from trainhub_node.upgrade import launcher

OPTION_VARIABLES = {
    "address": "TRAINHUB_NODE_ADDRESS",
    "interface": "TRAINHUB_NODE_INTERFACE",
    "run_as": "TRAINHUB_NODE_RUN_AS",
    "slots": "TRAINHUB_NODE_SLOTS",
    "name": "TRAINHUB_NODE_NAME",
}
MARKS = {True: "ok", False: "wrong", None: "note"}
DESCRIPTION = """\
Make this machine a node of a TrainHub.

  1. on the hub:   manage.py node token NAME        prints a join token, for one machine, once
  2. here:         trainhub-node join https://HUB:8000 --token thj_…
  3. here:         trainhub-node run                or a service: see `trainhub-node unit`
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trainhub-node", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"trainhub-node {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    folder_options = argparse.ArgumentParser(add_help=False)
    folder_options.add_argument(
        "--dir", default="", help=f"folder of this node (default here: {configuration.default_folder()})"
    )
    _add_join(commands, folder_options)
    commands.add_parser("run", parents=[folder_options], help="run the agent until SIGTERM")
    in_allocation = commands.add_parser(
        "allocation", help="run one run on a node that Slurm has given; scripts of TrainHub call this"
    )
    in_allocation.add_argument("url", metavar="URL", help="the hub's address")
    commands.add_parser(
        "status", parents=[folder_options], help="check whether the hub accepts this node, and list problems"
    )
    commands.add_parser("unit", parents=[folder_options], help="print a systemd unit for `run`")
    return parser


def _add_join(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], folder_options: argparse.ArgumentParser
) -> None:
    join = commands.add_parser("join", parents=[folder_options], help="become a node of a hub")
    join.add_argument("url", metavar="URL", help="the hub's address, like https://10.0.0.1:8000")
    join.add_argument(
        "--token", required=True, help="join token that `manage.py node token NAME` printed on the hub"
    )
    join.add_argument(
        "--name", default="", help="name of this node (default: the token's, or this machine's host name)"
    )
    join.add_argument(
        "--address", default="", help="IP address for the other nodes (default: the one that reaches the hub)"
    )
    join.add_argument(
        "--interface", default="", help="network interface of training traffic (default: that of --address)"
    )
    join.add_argument(
        "--run-as",
        default="",
        metavar="ACCOUNT",
        help="account under which runs execute; range: one for each run; person: that of the person who "
        "submitted it; needs root",
    )
    join.add_argument(
        "--slots", default="", metavar="N", help="slots for processes without a GPU (default: 4 per core)"
    )
    join.add_argument(
        "--replace",
        action="store_true",
        help="replace the node of that name, or an earlier join here",
    )
    join.add_argument("--insecure-http", action="store_true", help="allow http:// in a private network")
    join.add_argument(
        "--systemd", action="store_true", help="then print a systemd unit, and what to do with it"
    )


def main() -> None:
    """Runs the console script. It exits without waiting for threads of libraries, which may still wait for a
    broker or a hub."""
    code = run_command()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def run_command() -> int:
    """Returns 0 on success and 1 after an error, printed as a sentence. argparse exits with 2."""
    args = build_parser().parse_args()
    try:
        if args.command == "allocation":
            _log_to_stderr()
            return allocation.run(args.url, os.environ)
        folder = configuration.folder(args.dir, os.environ)
        match args.command:
            case "join":
                return _join(args, folder)
            case "status":
                return _status(folder)
            case "unit":
                sys.stdout.write(systemd.unit(folder))
                _print_note(systemd.advice(folder))
                return 0
        return _run(folder)
    except allocation.ClaimError as error:
        _print_note(f"trainhub-node: {error}")
    except join.JoinError as error:
        _print_note(f"trainhub-node: {_with_flags(str(error))}. Nothing was changed here.")
    except (SettingsError, OSError) as error:
        _print_note(f"trainhub-node: {error}")
    return 1


def _join(args: argparse.Namespace, folder: Path) -> int:
    flags = {variable: value for flag, variable in OPTION_VARIABLES.items() if (value := getattr(args, flag))}
    env = {**os.environ, **flags}
    result = join.join_hub(
        join.JoinRequest(
            url=args.url,
            token=args.token,
            folder=folder,
            environment=env,
            name=env.get("TRAINHUB_NODE_NAME", ""),
            replace=args.replace,
            allow_http=args.insecure_http,
        )
    )
    _print_note(f"This machine is now {result.name} of cluster {result.cluster}, at {result.url}.")
    for remark in result.warnings:
        _print_note(f"But {remark}.")
    if args.systemd:
        sys.stdout.write(systemd.unit(folder))
        _print_note(systemd.advice(folder))
    else:
        _print_note(
            f"Start it: trainhub-node run --dir {folder}   (as a service: trainhub-node unit --dir {folder})"
        )
    return 0


def _status(folder: Path) -> int:
    findings = list(status.status_findings(settings.read(configuration.environment(folder, os.environ))))
    for finding in findings:
        sys.stdout.write(f"{MARKS[finding.is_good]:<6} {finding.subject:<8} {finding.text}\n")
    return int(any(finding.is_good is False for finding in findings))


def _run(folder: Path) -> int:
    _log_to_stderr()
    node_settings = settings.read(configuration.environment(folder, os.environ))
    # Before any program in these folders runs.
    wrapper.check_folders(node_settings)
    launcher.enter_program(node_settings.folder, node_settings.upgrades)
    agent = Agent(node_settings)

    def end(_number: int, _frame: object) -> None:
        # A signal handler must not wait for locks that the interrupted code holds.
        threading.Thread(target=agent.close, name="closing").start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    agent.run()
    if agent.is_restarting:
        launcher.restart()
    return 0


def _log_to_stderr() -> None:
    level = os.environ.get("LOG_LEVEL", "INFO")
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)


def _with_flags(sentence: str) -> str:
    """Replaces the names of variables in a message by the options that set them."""
    for flag, variable in OPTION_VARIABLES.items():
        sentence = re.sub(rf"\b{variable}=", f"--{flag.replace('_', '-')} ", sentence)
    return sentence


def _print_note(line: str) -> None:
    """Prints a line for people to stderr, beside the output that programs may read."""
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()
