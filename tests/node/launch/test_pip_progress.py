"""How many packages pip has, read from its output."""

from __future__ import annotations

import pytest

from trainhub_node.environments.pip_progress import PipProgress

COLLECTING = b"""Looking in links: /wheels
Collecting torch==2.13.0 (from -r requirements.txt (line 1))
  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (30 kB)
Collecting typing-extensions>=4.10 (from torch==2.13.0)
  Using cached typing_extensions-4.15.0-py3-none-any.whl.metadata (3.3 kB)
Collecting Jinja2[i18n] (from torch==2.13.0)
  Downloading jinja2-3.1.6-py3-none-any.whl.metadata (2.9 kB)
"""
DOWNLOADING = b"""Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (888.1 MB)
Using cached typing_extensions-4.15.0-py3-none-any.whl (44 kB)
"""


def sentence(*pieces: bytes) -> str:
    progress = PipProgress()
    for piece in pieces:
        progress.feed(piece)
    return progress.sentence()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"", ""),
        (b"Requirement already satisfied: numpy in /lib\n", ""),
        (b"Collecting torch\n", "Finding the versions to download: 1 package so far."),
        (COLLECTING, "Finding the versions to download: 3 packages so far."),
        (COLLECTING + DOWNLOADING, "Downloaded 2 of 3 packages."),
        # Each name counts once, also when pip tries several versions.
        (COLLECTING + COLLECTING + DOWNLOADING + DOWNLOADING, "Downloaded 2 of 3 packages."),
        # Without metadata apart, a total would be that of the packages named so far.
        (DOWNLOADING + b"Collecting numpy\n", "Downloaded 2 packages so far."),
        (COLLECTING + b"Processing /wheels/jinja2-3.1.6-py3-none-any.whl\n", "Downloaded 1 of 3 packages."),
        (COLLECTING + DOWNLOADING + b"Installing collected packages: a, b, c\n", "Installing 3 packages."),
    ],
)
def test_counts_what_pip_names(output: bytes, expected: str) -> None:
    assert sentence(output) == expected
    # Wherever the pieces of the output end.
    assert sentence(*(output[at : at + 7] for at in range(0, len(output), 7))) == expected


def test_a_line_without_end_takes_no_more_memory() -> None:
    progress = PipProgress()
    for _ in range(8):
        progress.feed(b"x" * 100_000)
    progress.feed(b"\nCollecting numpy\n")
    assert progress.needed == {"numpy"}
    assert len(progress._rest) == 0
