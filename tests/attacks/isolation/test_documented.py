"""docs/isolation.md promises exactly what the suite tries."""

from __future__ import annotations

from tests.attacks.isolation.attempts import ROWS
from tests.attacks.isolation.table import CAN, CANNOT, MODES, documented


def test_each_row_of_the_table_is_tried_in_each_mode_and_each_attempt_has_a_row() -> None:
    assert list(documented()) == [(mode, row) for row in ROWS for mode in MODES]


def test_each_cell_says_can_or_cannot() -> None:
    assert set(documented().values()) == {CAN, CANNOT}
