"""The most memory that a process has held."""

from __future__ import annotations

from pathlib import Path


def peak_mib(pid: int) -> float:
    """Returns it since the process began, or since `forget_peak`. Raises OSError when it has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    if not peaks:
        raise ProcessLookupError(pid)
    return peaks[0] / 1024


def forget_peak(pid: int) -> float:
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak_mib(pid)
