"""Specs made of the configurations of other launchers: `client.specs`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainhub_sdk.client import Client
    from trainhub_sdk.determined.experiment import DeterminedExperiment


class SpecImports:
    """Reads configurations for the hub of a client, which is asked what it has."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def from_determined(
        self,
        config: str | Path | Mapping[str, Any],
        context_dir: str | Path | None = None,
        *,
        cluster: str = "",
        environment: str = "",
        gpus_per_node: int | None = None,
        seed: int | None = None,
    ) -> DeterminedExperiment:
        """Returns an experiment of Determined as specs, which its `submit` makes runs. `config`: a file, YAML
        or JSON, or what stands in one; `context_dir`: the folder of the code, by default that of the file.
        `gpus_per_node`: how many a node has, by default as the hub's nodes have them. `seed`: of the values
        that a search draws. Raises ConfigRefused for what cannot become a spec."""
        from trainhub_sdk.determined.experiment import read_experiment

        return read_experiment(
            config,
            context_dir,
            cluster=cluster,
            environment=environment,
            gpus_per_node=gpus_per_node,
            seed=seed,
            clusters=self._client.clusters(),
            nodes=self._client.nodes(),
        )
