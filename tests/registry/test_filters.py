"""MLflow's filters of models and versions, read without a database."""

from __future__ import annotations

import pytest

from registry.mlflow.model_search import VERSIONS
from tracking.mlflow.protocol.errors import MlflowError


@pytest.mark.parametrize("number", ["'+-5'", "'²'", "'٣'", "1.5", "'1' + 1", f"'{'9' * 18}'", "''"])
def test_a_version_is_compared_with_whole_numbers_alone(number: str) -> None:
    with pytest.raises(MlflowError, match=r"^Invalid filter"):
        VERSIONS.parse_conditions(f"version_number = {number}")


def test_a_hundred_percent_signs_hold_nobody_up() -> None:
    (like,) = VERSIONS.parse_conditions(f"name LIKE '{'%a' * 100}%b'")
    assert not like.matches("a" * 10_000)
