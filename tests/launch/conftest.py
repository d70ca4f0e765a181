"""Golden files: `REWRITE_GOLDEN=1 pytest tests/launch` writes them anew; read the diff before committing
it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def is_golden() -> Callable[[str, str], None]:
    """Assert that `text` is exactly what golden/<name>.txt holds."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / f"{name}.txt"
        if os.environ.get("REWRITE_GOLDEN"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8"), f"{file} differs; REWRITE_GOLDEN=1 writes it anew"

    return check
