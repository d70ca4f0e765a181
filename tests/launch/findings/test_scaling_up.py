from __future__ import annotations

import pytest

from tests.hub import PROJECT
from tests.launch.builders import make_node, mpi, pytorch
from tests.launch.findings.findings_of import script
from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.scaling_up import Clusters, scaling_up
from trainhub_launch.frameworks import demand
from trainhub_launch.gpus.catalogue import CATALOGUE, model_of
from trainhub_launch.spec import RunSpec

OLD = tuple(make_node(f"old-{n}", gpus=4) for n in (1, 2))
NEW = (make_node("new-1", gpus=8),)
DEVICES = {"old-1": "Tesla K80", "old-2": "Tesla K80", "new-1": "Tesla V100-SXM2-16GB"}


def told(spec: RunSpec, clusters: Clusters, devices: dict[str, str] | None = None) -> list[Finding]:
    names = DEVICES if devices is None else devices
    return list(scaling_up(demand(spec), spec.resources.cluster, clusters, names))


class TestHint:
    def test_one_node_that_is_large_enough_is_better_than_two(self) -> None:
        (hint,) = told(script("", mpi(4, 2), gpus=4), {"local": (*OLD, *NEW)})
        assert (hint.level, hint.field) == ("hint", "distribution.node_count")
        assert hint.message.startswith("node new-1 has 8 GPUs: as one node with 8 GPUs instead of 2 with 4")

    def test_fewer_faster_gpus_of_another_cluster_are_better_than_many_slow_ones(self) -> None:
        (hint,) = told(script("", pytorch(8, 2), gpus=4), {"local": OLD, "fast": NEW})
        assert (hint.level, hint.field) == ("hint", "resources.cluster")
        assert hint.message.startswith(
            "1 V100 of cluster fast can match the peak performance of 8 K80s, on one node"
        )

    @pytest.mark.parametrize(
        ("spec", "clusters"),
        [
            (script("", pytorch(4, 1), gpus=4), {"local": OLD, "fast": NEW}),
            (script("", pytorch(4, 2)), {"local": OLD, "fast": NEW}),
            (script("", pytorch(8, 2), gpus=4), {"local": OLD}),
            (script("", pytorch(8, 2), gpus=4), {}),
        ],
        ids=["one node", "no GPUs", "nothing faster", "nothing known"],
    )
    def test_is_silent_where_nothing_is_better(self, spec: RunSpec, clusters: Clusters) -> None:
        assert told(spec, clusters) == []

    def test_says_nothing_of_models_that_it_does_not_know(self) -> None:
        assert told(script("", pytorch(8, 2), gpus=4), {"local": OLD, "fast": NEW}, {"new-1": "Quadro"}) == []


class TestCatalogue:
    @pytest.mark.parametrize(
        ("name", "model"),
        [
            ("NVIDIA H100 80GB HBM3", "H100"),
            ("NVIDIA H100 PCIe", "H100 PCIe"),
            ("Tesla K80", "K80"),
            ("NVIDIA A100-SXM4-40GB", "A100"),
            ("NVIDIA L40S", "L40S"),
            ("NVIDIA L4", "L4"),
            ("NVIDIA A10G", "A10"),
            ("NVIDIA GH200 480GB", "H200"),
            ("NVIDIA GB200", "B200"),
            ("NVIDIA T400", None),
            ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", None),
            ("", None),
        ],
    )
    def test_knows_a_device_by_the_name_that_it_tells(self, name: str, model: str | None) -> None:
        found = model_of(name)
        assert (found.name if found else None) == model

    def test_goes_from_the_slowest_to_the_fastest(self) -> None:
        peaks = [model.peak_tflops for model in CATALOGUE]
        assert peaks == sorted(peaks)

    def test_is_the_one_that_the_documents_list(self) -> None:
        rows = [
            (
                f"| {item.name} | {item.memory_gib} | {item.peak_tflops:g} | "
                f"{'yes' if item.nvlink else ''} | "
                f"{item.azure} |"
            )
            for item in CATALOGUE
        ]
        assert (PROJECT / "docs" / "gpu-models.md").read_text().endswith("\n".join(rows) + "\n")
