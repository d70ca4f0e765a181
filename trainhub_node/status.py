"""The findings that `trainhub-node status` prints."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from trainhub_launch.addresses import is_loopback
from trainhub_node import clock
from trainhub_node.gpu.nvml.nvml_library import Gpus
from trainhub_node.launch.engine_trial import NOT_TRIED, try_engine
from trainhub_node.link import wakeups
from trainhub_node.link.hub_client import HubClient, HubError, TokenRejected
from trainhub_node.machine import interpreters
from trainhub_node.settings import NodeSettings
from trainhub_node.telemetry import heartbeat
from trainhub_node.upgrade.program_record import programs_folder, read_record


@dataclass(frozen=True)
class StatusFinding:
    """One line of the status. `is_good` None: information that is neither good nor bad."""

    is_good: bool | None
    subject: str
    text: str


def status_findings(settings: NodeSettings) -> Iterator[StatusFinding]:
    yield from _hub(settings)
    yield from _address(settings)
    yield from _machine(settings)


def _hub(settings: NodeSettings) -> Iterator[StatusFinding]:
    hub = HubClient(settings.hub_url, settings.token, settings.hub_ca)
    requested_at = time.time()
    try:
        config = hub.config()
    except TokenRejected as error:
        yield StatusFinding(
            False, "hub", f"{settings.hub_url}: {error}; join again with a new token and --replace"
        )
        return
    except HubError as error:
        yield StatusFinding(False, "hub", f"{settings.hub_url} cannot be reached: {error}")
        return
    finally:
        hub.close()
    warning = clock.warning(clock.offset_s(float(config["hub_time"]), requested_at, time.time()))
    yield StatusFinding(
        True,
        "hub",
        f"{settings.hub_url} accepts this node as {config['node']} of cluster {config['cluster']}",
    )
    parts = urlsplit(settings.hub_url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        yield StatusFinding(
            None, "hub", "the way to it is not encrypted; start the hub with OPEN=1 and join again"
        )
    yield StatusFinding(not warning, "clock", warning or "agrees with the hub's")
    yield _broker(config, settings)


def _broker(config: dict[str, object], settings: NodeSettings) -> StatusFinding:
    if not config["broker_url"]:
        return StatusFinding(
            None, "broker", "none for this node: the hub's answers to reports bring the work, within seconds"
        )
    error = wakeups.connection_error(config, settings.hub_ca)
    if error:
        return StatusFinding(
            False,
            "broker",
            f"{error}; open its port to this machine. Until then reports bring the work, later",
        )
    return StatusFinding(True, "broker", "takes this node")


def _address(settings: NodeSettings) -> Iterator[StatusFinding]:
    address, interface = heartbeat.network_address(settings)
    is_local = is_loopback(address)
    note = ": other nodes cannot reach it, so it takes no part in runs of several" if is_local else ""
    yield StatusFinding(
        None if is_local else True,
        "address",
        f"{address} on {interface or 'no interface of this machine'}{note}",
    )
    for warning in heartbeat.address_warnings(settings):
        yield StatusFinding(False, "address", warning)


def _machine(settings: NodeSettings) -> Iterator[StatusFinding]:
    if current := read_record(programs_folder(settings.folder)).current:
        yield StatusFinding(None, "agent", f"{current} runs, which the hub has ordered, not this package")
    version = interpreters.python_version(settings.python, settings.run_as)
    yield StatusFinding(
        bool(version), "python", f"{settings.python} {version or 'does not start; set TRAINHUB_NODE_PYTHON'}"
    )
    yield from _gpus()
    mpi = heartbeat.mpi_version()
    yield StatusFinding(
        True if mpi else None,
        "mpi",
        mpi or "no mpirun on the PATH, so no runs with MPI (Debian: openmpi-bin)",
    )
    engine = try_engine(settings, NOT_TRIED)
    yield StatusFinding(True if engine.works else None, "engine", str(engine))


def _gpus() -> Iterator[StatusFinding]:
    devices = Gpus()
    gpus = devices.read(time.monotonic())
    devices.close()
    if devices.trouble:
        yield StatusFinding(False, "gpus", devices.trouble)
    elif not gpus:
        yield StatusFinding(None, "gpus", "none; runs without GPUs come here")
    else:
        yield StatusFinding(True, "gpus", ", ".join(gpu.name for gpu in gpus if not gpu.parent))
