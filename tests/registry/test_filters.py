"""MLflow's filters of models and versions, read without a database."""

from __future__ import annotations

import pytest

from registry.mlflow.filters import parse
from registry.mlflow.searching import VERSION_KEYS
from tracking.search.errors import FilterError


@pytest.mark.parametrize("number", ["'+-5'", "'²'", "'٣'", "1.5", "'1' + 1", f"'{'9' * 18}'", "''"])
def test_a_version_is_compared_with_whole_numbers_alone(number: str) -> None:
    with pytest.raises(FilterError):
        parse(f"version_number = {number}", VERSION_KEYS)


def test_a_hundred_percent_signs_hold_nobody_up() -> None:
    (like,) = parse(f"name LIKE '{'%a' * 100}%b'", VERSION_KEYS)
    assert not like.holds({"name": "a" * 10_000, "tags": {}})
