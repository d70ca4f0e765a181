"""Names and sizes as other launchers write them."""

from __future__ import annotations

import re

MIB = 2**20


def plain_name(text: str, *, longest: int = 63) -> str:
    """Returns a text with letters, digits, `.`, `_` and `-` only, as job names may have them."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:longest] or "run"


def dns_name(text: str, *, longest: int = 40) -> str:
    """Returns a text as part of the name of a machine: small letters, digits and `-`, a letter first."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    name = name if name[:1].isalpha() else f"run-{name}"
    return name[:longest].strip("-")


def mebibytes(size: int) -> int:
    """Returns a size in MiB, rounded up."""
    return -(-size // MIB)


def duration(seconds: int) -> str:
    """Returns a duration as Slurm writes it: [days-]hours:minutes:seconds."""
    hours, rest = divmod(seconds, 3600)
    days, hours = divmod(hours, 24)
    minutes, seconds = divmod(rest, 60)
    clock = f"{hours:02}:{minutes:02}:{seconds:02}"
    return f"{days}-{clock}" if days else clock
