"""`python -m trainhub_node run`."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading

from trainhub_node import settings
from trainhub_node.agent import Agent


def main() -> int:
    parser = argparse.ArgumentParser(prog="trainhub-node", description="The node agent of TrainHub.")
    parser.add_argument("command", choices=["run"], help="run: take work from the hub named by TRAINHUB_HUB_URL")
    parser.parse_args()
    level = os.environ.get("LOG_LEVEL", "INFO")
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        agent = Agent(settings.read())
    except (settings.SettingsError, OSError) as error:
        sys.stderr.write(f"trainhub-node: {error}\n")
        return 1

    def end(_number: int, _frame: object) -> None:
        # A handler may not wait for locks that the interrupted code holds.
        threading.Thread(target=agent.close, name="closing").start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    agent.run()
    return 0


if __name__ == "__main__":
    # Threads of libraries may still wait for a broker or a hub; nothing that they hold needs an orderly end.
    code = main()
    logging.shutdown()
    os._exit(code)
