"""`trainhub-node`, which is `python -m trainhub_node`: join a hub, run the agent, look how it stands."""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import sys
import threading
from pathlib import Path

from trainhub_node import __version__, configuration, join, settings, status, systemd
from trainhub_node.agent import Agent
from trainhub_node.settings import SettingsError

FLAGS = {
    "address": "TRAINHUB_NODE_ADDRESS",
    "interface": "TRAINHUB_NODE_INTERFACE",
    "run_as": "TRAINHUB_NODE_RUN_AS",
    "slots": "TRAINHUB_NODE_SLOTS",
    "name": "TRAINHUB_NODE_NAME",
}
MARKS = {True: "ok", False: "wrong", None: "note"}
WORDS = """\
Make this machine a node of a TrainHub, and keep it one.

  1. on the hub:   manage.py node token NAME        prints a join token, for one machine, once
  2. here:         trainhub-node join https://HUB:8000 --token thj_…
  3. here:         trainhub-node run                or a service: see `trainhub-node unit`
"""


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        prog="trainhub-node", description=WORDS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    whole.add_argument("--version", action="version", version=f"trainhub-node {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument(
        "--dir", default="", help=f"folder of this node (default here: {configuration.default_folder()})"
    )
    join = commands.add_parser("join", parents=[where], help="become a node of a hub")
    join.add_argument("url", metavar="URL", help="the hub's address, like https://10.0.0.1:8000")
    join.add_argument(
        "--token", required=True, help="join token that `manage.py node token NAME` printed on the hub"
    )
    join.add_argument(
        "--name", default="", help="name of this node (default: the token's, or this machine's host name)"
    )
    join.add_argument(
        "--address", default="", help="IP address for the other nodes (default: that on the way to the hub)"
    )
    join.add_argument(
        "--interface", default="", help="network interface of training traffic (default: that of the address)"
    )
    join.add_argument(
        "--run-as", default="", metavar="ACCOUNT", help="account under which runs execute; needs root"
    )
    join.add_argument(
        "--slots", default="", metavar="N", help="places for processes without a GPU (default: 4 per core)"
    )
    join.add_argument(
        "--replace",
        action="store_true",
        help="take the place of a node of that name, or of an earlier join here",
    )
    join.add_argument(
        "--insecure-http", action="store_true", help="speak http:// over a network that is yours alone"
    )
    join.add_argument(
        "--systemd", action="store_true", help="then print a systemd unit, and what to do with it"
    )
    commands.add_parser("run", parents=[where], help="take work from the hub, until SIGTERM")
    commands.add_parser(
        "status", parents=[where], help="whether the hub takes this node, and what may be wrong"
    )
    commands.add_parser("unit", parents=[where], help="print a systemd unit for `run`")
    return whole


def main() -> None:
    """The console script. Threads of libraries may still wait for a broker or a hub; nothing that they hold
    needs an orderly end."""
    code = obey()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def obey() -> int:
    """0: done; 1: a refusal, said in a sentence; 2: a command line that cannot be read."""
    given = parser().parse_args()
    place = configuration.folder(given.dir, os.environ)
    try:
        match given.command:
            case "join":
                return _join(given, place)
            case "status":
                return _status(place)
            case "unit":
                sys.stdout.write(systemd.unit(place))
                _say(systemd.advice(place))
                return 0
        return _run(place)
    except join.CannotJoin as error:
        _say(f"trainhub-node: {_with_flags(str(error))}. Nothing was changed here.")
    except (SettingsError, OSError) as error:
        _say(f"trainhub-node: {error}")
    return 1


def _join(given: argparse.Namespace, place: Path) -> int:
    flags = {variable: value for flag, variable in FLAGS.items() if (value := getattr(given, flag))}
    env = {**os.environ, **flags}
    joined = join.join(
        join.Wish(
            url=given.url,
            token=given.token,
            folder=place,
            environment=env,
            name=env.get("TRAINHUB_NODE_NAME", ""),
            replace=given.replace,
            insecure_http=given.insecure_http,
        )
    )
    _say(f"This machine is now {joined.name} of cluster {joined.cluster}, at {joined.url}.")
    for remark in joined.remarks:
        _say(f"But {remark}.")
    if given.systemd:
        sys.stdout.write(systemd.unit(place))
        _say(systemd.advice(place))
    else:
        _say(f"Start it: trainhub-node run --dir {place}   (as a service: trainhub-node unit --dir {place})")
    return 0


def _status(place: Path) -> int:
    found = list(status.findings(settings.read(configuration.environment(place, os.environ))))
    for finding in found:
        sys.stdout.write(f"{MARKS[finding.good]:<6} {finding.about:<8} {finding.text}\n")
    return int(any(finding.good is False for finding in found))


def _run(place: Path) -> int:
    level = os.environ.get("LOG_LEVEL", "INFO")
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    agent = Agent(settings.read(configuration.environment(place, os.environ)))

    def end(_number: int, _frame: object) -> None:
        # A handler may not wait for locks that the interrupted code holds.
        threading.Thread(target=agent.close, name="closing").start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    agent.run()
    return 0


def _with_flags(sentence: str) -> str:
    """What a refusal calls a variable, as the flag that was given for it."""
    for flag, variable in FLAGS.items():
        sentence = re.sub(rf"\b{variable}=", f"--{flag.replace('_', '-')} ", sentence)
    return sentence


def _say(line: str) -> None:
    """To a person, beside what a command prints for others to read."""
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()
