"""Whether an order to run another program is one that this node may follow."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from trainhub_launch.upgrades.program_order import ProgramOrder, release_numbers
from trainhub_node import __version__
from trainhub_node.upgrade import ed25519

# Versions and digests become names of folders.
VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,31}")
DIGEST = re.compile(r"[0-9a-f]{64}")
# The archive, what it unpacks to, and the compiled modules.
SIZE_UNPACKED = 6
MAX_ARCHIVE_BYTES = 2**30
START_TIMEOUT_S = 60.0


class OrderRefused(Exception):
    """The message is a sentence for the operator."""


def check_signature(order: ProgramOrder, pinned_key: str) -> None:
    """Raises OrderRefused for an order that the hub has not signed. `pinned_key`: its public key, "" before
    the first order, which brings it over the same connection as everything else of the hub."""
    key = pinned_key or order.key
    if pinned_key and order.key != pinned_key:
        raise OrderRefused(
            "The hub signs with another key than the one that this node knows. If the hub has lost its key, "
            'set "key" to "" in programs/record.json in the node\'s folder, restart its agent, and order '
            "again."
        )
    try:
        has_signed = ed25519.is_signed(
            bytes.fromhex(key), order.signed_bytes(), bytes.fromhex(order.signature)
        )
    except ValueError:
        has_signed = False
    if not has_signed:
        raise OrderRefused("The signature of the order is not the hub's, so nothing was fetched.")


def check_order(order: ProgramOrder, node: str, folder: Path) -> None:
    """Raises OrderRefused for an order that this node cannot follow. `node`: its name."""
    if order.node != node:
        raise OrderRefused(f"The order is for the node {order.node}, and this one is {node}.")
    if not VERSION.fullmatch(order.version) or not DIGEST.fullmatch(order.sha256):
        raise OrderRefused("The order names no version and SHA-256.")
    if release_numbers(order.version) < release_numbers(__version__) and not order.may_go_back:
        raise OrderRefused(
            f"{order.version} is older than {__version__}, which runs here. To go back, order that expressly."
        )
    if order.machine != platform.machine():
        raise OrderRefused(
            f"The hub's program is for {order.machine}, and this machine is {platform.machine()}. Upgrade it "
            "by hand: install the wheel with pip, and restart the agent."
        )
    if sys.version_info[:2] < release_numbers(order.python):
        own = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise OrderRefused(
            f"{order.version} needs Python {order.python}, and the agent runs with {own}. Make its virtual "
            "environment anew with a newer Python, and install the wheel there."
        )
    _check_room(order, folder)


def _check_room(order: ProgramOrder, folder: Path) -> None:
    if not 0 < order.size <= MAX_ARCHIVE_BYTES:
        raise OrderRefused(f"The order names an archive of {order.size} bytes.")
    free = shutil.disk_usage(folder).free
    needed = order.size * SIZE_UNPACKED
    if free < needed:
        raise OrderRefused(
            f"{folder} has {free >> 20} MiB free, and the new version needs {needed >> 20} MiB. Make room, "
            "and order again."
        )


def check_start(order: ProgramOrder, program: Path) -> None:
    """Raises OrderRefused for a program that cannot even say its version on this machine."""
    argv = [sys.executable, "-P", "-m", "trainhub_node", "--version"]
    env = {**os.environ, "PYTHONPATH": str(program)}
    try:
        done = subprocess.run(
            argv, env=env, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OrderRefused(
            f"{order.version} does not start here: it said nothing for {START_TIMEOUT_S:.0f} s."
        ) from error
    if done.returncode or done.stdout.split()[-1:] != [order.version]:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"code {done.returncode}"]
        raise OrderRefused(f"{order.version} does not start here: {lines[-1]}")
