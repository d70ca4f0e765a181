"""The terms of an attempt (`terms.json`): what its child needs to know of this node."""

from __future__ import annotations

import dataclasses
import os

from trainhub_launch.order import NodeOrder
from trainhub_node.launch import wrapper
from trainhub_node.settings import NodeSettings

PIP_PREFIX = "PIP_"
PIP_NAMES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)


def build(settings: NodeSettings, order: NodeOrder) -> dict[str, object]:
    """Returns the terms, with which the child needs neither settings nor the agent.

    Agents and children of other versions read this file: its keys never change."""
    # pip's settings and the proxies are the node's, not the run's: they say how this machine reaches an
    # index.
    pip = {
        name: value for name, value in os.environ.items() if name.startswith(PIP_PREFIX) or name in PIP_NAMES
    }
    return {
        "node": settings.name,
        "python": settings.python,
        "sites": str(settings.sites),
        "environments": str(settings.environments),
        "digest": order.environment.digest,
        "pip": pip,
        "account": dataclasses.asdict(settings.run_as) if settings.run_as else None,
        "wrapper": wrapper.wrapper_argv(settings),
        "ca": str(settings.rank_ca) if settings.hub_ca else "",
    }
