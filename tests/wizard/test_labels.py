from __future__ import annotations

import pytest

from jobs.wizard import steps
from jobs.wizard.labels import with_labels
from jobs.wizard.parts import Parts
from tests.wizard.builders import typed

GANG = {"distribution": typed("distribution", kind="pytorch_process")}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("needs 2 nodes (distribution.node_count)", "needs 2 nodes (“Nodes”)"),
        ("lower resources.gpus_per_node.", "lower “GPUs per node”."),
        ("node_count.py is not there", "node_count.py is not there"),
        ("run it with --node_rank or $NODE_RANK", "run it with --node_rank or $NODE_RANK"),
        ("'node_count' is not in the source", "'node_count' is not in the source"),
        ("my_own_name is unknown", "my_own_name is unknown"),
    ],
)
def test_only_names_of_fields_become_labels(message: str, expected: str) -> None:
    assert with_labels(message, steps.forms_of(steps.raw_of(Parts()) | GANG)) == expected
