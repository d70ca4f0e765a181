"""The account numbers that a node may give to attempts, and whether they are free for that."""

from __future__ import annotations

from pathlib import Path

# Neither systemd nor distributions assign these numbers, and they lie above those that /etc/subuid gives to
# containers.
DEFAULT = range(1_900_000_000, 1_900_065_536)
LOWEST, HIGHEST = 1000, 2**31 - 2
SUBORDINATE_IDS = (Path("/etc/subuid"), Path("/etc/subgid"))
ID_MAPS = (Path("/proc/self/uid_map"), Path("/proc/self/gid_map"))


def read(value: str) -> range:
    """Returns the range that `value` names, like 1900000000-1900065535, or the default one for "". Raises
    ValueError with a remedy if these numbers cannot be used here."""
    numbers = _parse(value) if value else DEFAULT
    text = f"{numbers.start}-{numbers[-1]}"
    for file in SUBORDINATE_IDS:
        for start, count in subordinate_ids(file):
            if start < numbers.stop and numbers.start < start + count:
                raise ValueError(
                    f"{text} overlaps with {start}-{start + count - 1} of {file}, which belongs to "
                    "containers; choose other numbers"
                )
    for file in ID_MAPS:
        maps = mapped_ids(file)
        if maps and not any(
            start <= numbers.start and numbers.stop <= start + count for start, count in maps
        ):
            raise ValueError(
                f"{text} are no accounts in this container, whose accounts {file} numbers; choose numbers "
                "that exist in it"
            )
    return numbers


def _parse(value: str) -> range:
    first, _, last = value.partition("-")
    if not (first.isdecimal() and last.isdecimal() and LOWEST <= int(first) < int(last) <= HIGHEST):
        raise ValueError(f"must be two account numbers from {LOWEST} on, like {DEFAULT.start}-{DEFAULT[-1]}")
    return range(int(first), int(last) + 1)


def subordinate_ids(file: Path) -> list[tuple[int, int]]:
    """Returns (first number, how many) of each line of /etc/subuid or /etc/subgid."""
    return [pair for line in _lines(file) if (pair := _pair(line.split(":")[1:]))]


def mapped_ids(file: Path) -> list[tuple[int, int]]:
    """Returns (first number inside, how many) of each line of /proc/self/uid_map or gid_map."""
    return [pair for line in _lines(file) if (pair := _pair(line.split()[::2]))]


def _pair(fields: list[str]) -> tuple[int, int] | None:
    if len(fields) != 2 or not all(field.strip().isdecimal() for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
