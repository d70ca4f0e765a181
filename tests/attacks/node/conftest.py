from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.conftest import hub, reachable, start_agent  # noqa: F401 - fixtures


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other accounts may pass through, as pytest's own folders are not."""
    made = Path(tempfile.mkdtemp(prefix="trainhub-attack-"))
    made.chmod(0o711)
    try:
        yield made
    finally:
        shutil.rmtree(made)
