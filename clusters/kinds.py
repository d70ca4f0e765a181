"""The kinds of clusters there are. A new kind is a module that implements the contract, and a line here."""

from __future__ import annotations

from clusters.allocations.slurm_backend import SlurmBackend
from clusters.backends.agent_backend import AgentBackend
from clusters.backends.contract import Backend
from clusters.models import Cluster

AGENT, SLURM = "agent", "slurm"
BACKENDS: dict[str, Backend] = {AGENT: AgentBackend(), SLURM: SlurmBackend()}


def backend_of(cluster: Cluster) -> Backend:
    return BACKENDS[cluster.kind]
