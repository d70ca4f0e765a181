"""The agent inside an allocation of Slurm: a node for one run, without root, a service or a shared folder.

The batch script starts it by srun, once on each node. It exchanges the claim code of the script for a token
of its own, works as any agent, and ends once the hub has everything of the run."""

from __future__ import annotations

import logging
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainhub_launch.json_types import JsonObject
from trainhub_launch.machine import BY_SLURM
from trainhub_launch.report import StopOrder
from trainhub_launch.states import StopReason
from trainhub_node import configuration, join, settings
from trainhub_node.agent import Agent
from trainhub_node.backoff import Backoff
from trainhub_node.job_cache import open_cache
from trainhub_node.link.hub_client import HubClient, HubError, HubUnavailable

log = logging.getLogger(__name__)
CLAIM, FINGERPRINT, GRACE = "TRAINHUB_CLAIM", "TRAINHUB_HUB_FINGERPRINT", "TRAINHUB_GRACE_S"
# The folder in which each account keeps something for its later jobs, unset = none.
CACHE = "TRAINHUB_JOB_CACHE"
# How long the hub may be away, or Slurm not yet call the job running, before the node gives up.
REDEEM_WITHIN_S = 300.0
RETRY_S = 1.0
# How long the hub may take to order the run, once all nodes are there; nodes may start minutes apart.
ORDER_WITHIN_S = 900.0
LOOK_S = 0.05
CLOSE_WITHIN_S = 0.5


class ClaimError(Exception):
    """This process cannot become a node; the message is a sentence that says why."""


def run(url: str, env: Mapping[str, str]) -> int:
    """Returns 0 once the run has ended and the hub has all of it, and 1 if nothing was ordered. Raises
    ClaimError."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-"))
    try:
        identity = _redeem(url, folder, env)
        with open_cache(env.get(CACHE, "")) as cache:
            variables = _agent_environment(url, folder, env, identity)
            if cache is not None:
                variables["TRAINHUB_NODE_CACHE"] = str(cache)
            has_worked = _work(Agent(settings.read(variables)), env)
        return 0 if has_worked else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _work(agent: Agent, env: Mapping[str, str]) -> bool:
    """Returns whether there was a run, once it has ended."""
    _heed_signals(agent, int(env.get(GRACE, "10")))
    worker = threading.Thread(target=agent.run, name="agent", daemon=True)
    worker.start()
    has_worked = _wait_until_settled(agent, worker)
    threading.Thread(target=agent.close, name="closing", daemon=True).start()
    # The hub has everything. What still closes, such as a look for container engines, must hold no nodes.
    agent.work_ended.wait(CLOSE_WITHIN_S)
    return has_worked


def _wait_until_settled(agent: Agent, worker: threading.Thread) -> bool:
    """Returns whether there was a run: once it is settled, none is ordered in time, or the agent ends."""
    deadline = time.monotonic() + ORDER_WITHIN_S
    attempts = agent.attempts
    pauses = Backoff(max_s=ORDER_WITHIN_S)
    report_at = 0.0
    while not attempts.has_tracked and time.monotonic() < deadline and worker.is_alive():
        # The hub orders the run at once if this is its last node: sooner than wake-ups arrive here.
        if time.monotonic() >= report_at:
            agent.report_now()
            report_at = time.monotonic() + pauses.next_s()
        time.sleep(LOOK_S)
    while attempts.all() and worker.is_alive():
        time.sleep(LOOK_S)
    return attempts.has_tracked


def _redeem(url: str, folder: Path, env: Mapping[str, str]) -> dict[str, Any]:
    claim: JsonObject = {
        "code": _variable(env, CLAIM),
        "job_id": int(_variable(env, "SLURM_JOB_ID")),
        "restart_count": int(env.get("SLURM_RESTART_COUNT", "0")),
        "node": env.get("SLURMD_NODENAME") or socket.gethostname(),
    }
    fingerprint = env.get(FINGERPRINT, "")
    pem = join.fetch_authority(url, fingerprint) if fingerprint else ""
    if pem:
        (folder / configuration.HUB_CA).write_text(pem)
    hub = HubClient(url, pem=pem)
    deadline = time.monotonic() + REDEEM_WITHIN_S
    try:
        while True:
            try:
                return hub.redeem(claim)
            except HubUnavailable as error:
                if time.monotonic() > deadline:
                    raise ClaimError(f"the hub at {url} gave this node no run: {error}") from error
                time.sleep(RETRY_S)
            except HubError as error:
                raise ClaimError(f"the hub at {url} refuses this node: {error}") from error
    finally:
        hub.close()


def _agent_environment(
    url: str, folder: Path, env: Mapping[str, str], identity: Mapping[str, Any]
) -> dict[str, str]:
    ca = folder / configuration.HUB_CA
    return {
        **env,
        **({"TRAINHUB_HUB_CA": str(ca)} if ca.exists() else {}),
        "TRAINHUB_HUB_URL": url,
        "TRAINHUB_NODE_TOKEN": str(identity["token"]),
        "TRAINHUB_NODE_NAME": str(identity["name"]),
        "TRAINHUB_NODE_DIR": str(folder),
        # Slurm counts them from 0 among those that the job may see, as NVML does there.
        "TRAINHUB_NODE_GPUS": env.get("CUDA_VISIBLE_DEVICES", ""),
        "TRAINHUB_NODE_LIMITS": "outer",
        # The program came with the job.
        "TRAINHUB_NODE_UPGRADES": BY_SLURM,
    }


def _heed_signals(agent: Agent, grace_s: int) -> None:
    # A signal handler must not wait for locks that the interrupted code holds.
    def end(_number: int, _frame: object) -> None:
        log.warning("Slurm ends the job: the ranks may save their work, and then the run ends here")
        threading.Thread(target=_stop, args=(agent, grace_s, StopReason.OUTSIDE), name="ending").start()

    def warn(_number: int, _frame: object) -> None:
        log.warning("The time limit of the Slurm job comes near: the run ends now")
        threading.Thread(target=_stop, args=(agent, grace_s, StopReason.TIMEOUT), name="limit").start()

    signal.signal(signal.SIGURG, warn)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def _stop(agent: Agent, grace_s: int, reason: StopReason) -> None:
    """Ends the run. What its ranks still write reaches the hub; then the node program ends by itself."""
    running = agent.attempts.all()
    for folder in running:
        agent.stop(StopOrder(folder.run, folder.attempt, grace_s, reason))
    if not running and reason is StopReason.OUTSIDE:
        agent.close()


def _variable(env: Mapping[str, str], name: str) -> str:
    value = env.get(name, "")
    if not value:
        raise ClaimError(f"{name} is not set: this command is for the scripts that TrainHub submits to Slurm")
    return value
