"""The tests of the browser's logic, which are written in JavaScript beside this file and run in Node.js."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.js.node import run_node

FILES = sorted(Path(__file__).parent.glob("*.test.mjs"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".test.mjs"))
def test_logic(path: Path) -> None:
    result = run_node("--test-reporter=dot", path)
    assert result.returncode == 0, result.stdout
