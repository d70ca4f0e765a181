"""Whether nodes reach the hub through a relay: its names, its certificate, and the relay itself."""

from __future__ import annotations

import socket
import ssl

from django.conf import settings
from django.http.request import validate_host

from clusters.allocations import relays
from clusters.backends.slurm.examination import CheckResult, SlurmCheck
from clusters.models import SlurmPartition

CONNECT_S = 3.0


def check_relay(row: SlurmPartition, host: str, port: int) -> SlurmCheck:
    """`host` and `port`: where the login node listens for the hub."""
    where = f"{host}:{port}"
    problem = _name_problem(host) or _certificate_problem(host)
    if not problem and (trouble := relays.trouble_of(row)):
        problem = f"The relay at {where} does not stand: {trouble}"
    if problem:
        return SlurmCheck("relay", CheckResult.ERROR, problem)
    return SlurmCheck(
        "relay", CheckResult.OK, f"Nodes are told to report to {where}, where the relay stands."
    )


def _name_problem(host: str) -> str:
    if validate_host(host, settings.ALLOWED_HOSTS):
        return ""
    return (
        f"The hub does not answer to the name {host}, at which nodes reach it through the relay: add it to "
        "ALLOWED_HOSTS, and start the hub again. Its own certificate then has that name, too."
    )


def _certificate_problem(host: str) -> str:
    """Returns why a node would not trust the hub under this name, "" if it would."""
    if not settings.API_URL.startswith("https://"):
        return f"The hub at {settings.API_URL} speaks no TLS, which a relay needs: start it with OPEN=1."
    context = ssl.create_default_context(cafile=settings.HUB_CA or None)
    try:
        with (
            socket.create_connection(relays.own_address(), CONNECT_S) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            return ""
    except ssl.SSLCertVerificationError as error:
        return (
            f"Nodes would not trust the hub's certificate under the name {host} of the relay "
            f"({error.verify_message.rstrip('.')}): it needs that name."
        )
    except OSError as error:
        return f"The hub cannot be reached from its own machine at {settings.API_URL}: {error}."
