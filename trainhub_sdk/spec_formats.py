"""Specs in the formats of other launchers: `client.specs`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainhub_sdk.records.runs import SpecExport, SpecImport
from trainhub_sdk.spec import RunSpec

if TYPE_CHECKING:
    from trainhub_sdk.client import Client
    from trainhub_sdk.determined.experiment import DeterminedExperiment


class SpecFormats:
    """Writes and reads what other launchers read, for the hub of a client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def export(self, spec: RunSpec | Mapping[str, Any], to: str) -> SpecExport:
        """Returns a spec as the files of another launcher: `sbatch`, `commands`, `azureml`, `trainjob`,
        `skypilot`, `dstack` or `torchx`. They run without TrainHub; values of secrets are not in them."""
        data = spec if isinstance(spec, Mapping) else spec.to_json()
        body = {"spec": data, "to": to}
        return SpecExport.from_json(self._client.api.call("POST", "/api/v1/specs/export/", body))

    def read(self, text: str, source: str) -> SpecImport:
        """Returns a file of another launcher as a spec, with notes on each of its lines. `source`: `sbatch`,
        `azureml`, `skypilot` or `dstack`. A spec without `source` is submitted with the folder of the
        code."""
        body = {"from": source, "text": text}
        return SpecImport.from_json(self._client.api.call("POST", "/api/v1/specs/import/", body))

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
