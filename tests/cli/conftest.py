from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.sdk.scripted_hub import Reply, ScriptedHub


@pytest.fixture
def scripted() -> Iterator[tuple[ScriptedHub, str]]:
    """A hub that answers {} unless the test gives it replies, and its address."""
    hub = ScriptedHub(Reply())
    with hub.serving() as url:
        yield hub, url


@pytest.fixture
def trainhub(
    scripted: tuple[ScriptedHub, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> CommandLine:
    """The command line for the scripted hub."""
    return CommandLine(capsys, monkeypatch, tmp_path, scripted[1], "t0ken")
