"""Finding S19: web.log grew without limit while the server lived, by 60 KB with each request of anybody."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub import PROJECT
from trainhub.logs import rotation
from trainhub.logs.line_format import MAX_MESSAGE, LineFormatter

WRITER = """
import os, sys, time
from pathlib import Path
from trainhub.logs import rotation
rotation.keep_small(Path(sys.argv[1]), max_bytes=2_000, check_seconds=0.01)
for number in range(6000):
    os.write(1 + number % 2, b"line %d\\n" % number)
    if number % 20 == 0:
        time.sleep(0.005)
time.sleep(0.1)
"""


def record(message: str, *values: object) -> str:
    made = logging.LogRecord("django.request", logging.WARNING, "", 0, message, values, None)
    return LineFormatter("{levelname} {name}: {message}", style="{").format(made)


class TestRotation:
    def test_a_file_that_is_written_stays_small_and_loses_no_line(self, tmp_path: Path) -> None:
        log = tmp_path / "web.log"
        with open(rotation.open_log(log), "ab") as file:  # noqa: PTH123
            command = [sys.executable, "-c", WRITER, str(log)]
            subprocess.run(command, cwd=PROJECT, stdout=file, stderr=file, check=True, timeout=60)
        kept = [*sorted(tmp_path.glob("web.log.*"), reverse=True), log]
        lines = [int(line.split()[1]) for path in kept for line in path.read_text().splitlines()]
        assert len(kept) == rotation.GENERATIONS + 1
        assert lines == list(range(lines[0], 6000))
        assert all(path.stat().st_size < 30_000 for path in kept)
        assert all(path.stat().st_mode & 0o077 == 0 for path in kept[1:])

    def test_a_link_in_the_place_of_a_log_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "web.log").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OSError, match="symbolic links"):
            rotation.open_log(tmp_path / "web.log")

    def test_the_arguments_reach_the_module_that_is_run(self, tmp_path: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "trainhub.logs.rotation",
            str(tmp_path / "a.log"),
            "json.tool",
            "--help",
        ]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True, timeout=60)
        assert "usage" in done.stdout


class TestLines:
    def test_a_path_is_cut(self) -> None:
        line = record("Not Found: %s", "/" + "a" * 60_000)
        assert len(line) < MAX_MESSAGE + 100
        assert "58,012 characters" in line

    @pytest.mark.parametrize("text", ["\x1b[2J", "\x00", "\r", "\x9b31m", "\u202e", "\u2028"])
    def test_control_characters_are_escaped(self, text: str) -> None:
        assert text not in record("Not Found: %s", text)

    def test_a_newline_makes_no_record_of_its_own(self) -> None:
        line = record("Not Found: %s", "/a\n2026-01-01 00:00:00,000 WARNING workspaces: admin signed in")
        assert all(part.startswith("    ") for part in line.splitlines()[1:])

    def test_an_exception_that_quotes_a_request_is_escaped_too(self) -> None:
        try:
            raise ValueError("\x1b[2J" + "a" * 100_000)
        except ValueError as error:
            made = logging.LogRecord(
                "x", logging.ERROR, "", 0, "failed", (), (ValueError, error, error.__traceback__)
            )
        line = LineFormatter("{message}", style="{").format(made)
        assert "\x1b" not in line
        assert len(line) < 30_000
