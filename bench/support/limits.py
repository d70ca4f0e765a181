"""The limits of a benchmark: each compares a figure with something measured in the same run, so that the
speed of the machine cancels out."""

from __future__ import annotations


class Limits:
    """The ratios of one benchmark. `exit_code` tells `make bench` whether all are within their limits."""

    def __init__(self) -> None:
        self.exceeded: list[str] = []

    def at_most(self, name: str, ratio: float, limit: float) -> None:
        """For costs and times: TrainHub divided by the reference."""
        self._judge(name, ratio, limit, is_within=ratio <= limit, word="at most")

    def at_least(self, name: str, ratio: float, limit: float) -> None:
        """For rates: TrainHub divided by the reference."""
        self._judge(name, ratio, limit, is_within=ratio >= limit, word="at least")

    def exit_code(self) -> int:
        if self.exceeded:
            print(f"Past the limit: {'; '.join(self.exceeded)}")
        return int(bool(self.exceeded))

    def _judge(self, name: str, ratio: float, limit: float, *, is_within: bool, word: str) -> None:
        print(f"ratio of {name}: {ratio:.3g} (limit: {word} {limit:g})")
        if not is_within:
            self.exceeded.append(f"{name} {ratio:.3g}, {word} {limit:g}")


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
