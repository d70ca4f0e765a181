"""How this node stands: what `trainhub-node status` says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from trainhub_launch.addresses import is_loopback
from trainhub_node import clock
from trainhub_node.gpu.nvml import Gpus
from trainhub_node.link import wakeups
from trainhub_node.link.hub_client import Hub, HubError, Unwelcome
from trainhub_node.machine import interpreters
from trainhub_node.settings import NodeSettings
from trainhub_node.telemetry import heartbeat


@dataclass(frozen=True)
class Finding:
    """`good` None: worth knowing, and nobody's fault."""

    good: bool | None
    about: str
    text: str


def findings(settings: NodeSettings) -> Iterator[Finding]:
    yield from _hub(settings)
    yield from _place(settings)
    yield from _machine(settings)


def _hub(settings: NodeSettings) -> Iterator[Finding]:
    hub = Hub(settings.hub_url, settings.token, settings.hub_ca)
    asked_at = time.time()
    try:
        config = hub.config()
    except Unwelcome as error:
        yield Finding(False, "hub", f"{settings.hub_url}: {error}; join again with a new token and --replace")
        return
    except HubError as error:
        yield Finding(False, "hub", f"{settings.hub_url} cannot be asked: {error}")
        return
    finally:
        hub.close()
    doubt = clock.doubt(clock.offset_s(float(config["hub_time"]), asked_at, time.time()))
    yield Finding(
        True,
        "hub",
        f"{settings.hub_url} accepts this node as {config['node']} of cluster {config['cluster']}",
    )
    parts = urlsplit(settings.hub_url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        yield Finding(None, "hub", "the way to it is not encrypted; start the hub with OPEN=1 and join again")
    yield Finding(not doubt, "clock", doubt or "agrees with the hub's")
    yield _broker(config, settings)


def _broker(config: dict[str, object], settings: NodeSettings) -> Finding:
    if not config["broker_url"]:
        return Finding(
            None, "broker", "none for this node: the hub's answers to reports bring the work, within seconds"
        )
    why = wakeups.unreachable(config, settings.hub_ca)
    if why:
        return Finding(
            False, "broker", f"{why}; open its port to this machine. Until then reports bring the work, later"
        )
    return Finding(True, "broker", "takes this node")


def _place(settings: NodeSettings) -> Iterator[Finding]:
    address, interface = heartbeat.network_address(settings)
    alone = is_loopback(address)
    note = ": other nodes cannot reach it, so it takes no part in runs of several" if alone else ""
    yield Finding(
        None if alone else True,
        "address",
        f"{address} on {interface or 'no interface of this machine'}{note}",
    )
    for doubt in heartbeat.address_warnings(settings):
        yield Finding(False, "address", doubt)


def _machine(settings: NodeSettings) -> Iterator[Finding]:
    version = interpreters.ask(settings.python, settings.run_as)
    yield Finding(
        bool(version), "python", f"{settings.python} {version or 'does not start; set TRAINHUB_NODE_PYTHON'}"
    )
    yield from _gpus()
    mpi = heartbeat.mpi_version()
    yield Finding(
        True if mpi else None,
        "mpi",
        mpi or "no mpirun on the PATH, so no runs with MPI (Debian: openmpi-bin)",
    )


def _gpus() -> Iterator[Finding]:
    devices = Gpus()
    found = devices.read(time.monotonic())
    devices.close()
    if devices.trouble:
        yield Finding(False, "gpus", devices.trouble)
    elif not found:
        yield Finding(None, "gpus", "none; runs without GPUs come here")
    else:
        yield Finding(True, "gpus", ", ".join(gpu.name for gpu in found if not gpu.parent))
