"""Policies that end the runs of a search which promise nothing.

An interval of a run is a value of the primary metric that it has logged. All of this works on scores, for
which more is better: the values of a metric, with the other sign where less of it is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from trainhub_azureml.exceptions import UserErrorException

NO_SCORE = -math.inf


class ScoreCurve:
    """The scores of a run in the order in which they were logged; `is_final`: whether it has ended."""

    def __init__(self, scores: Sequence[float] = (), *, is_final: bool = False) -> None:
        self.is_final = is_final
        self._bests: list[float] = []
        self._means: list[float] = []
        best, total, count = NO_SCORE, 0.0, 0
        for score in scores:
            if not math.isnan(score):
                best, total, count = max(best, score), total + score, count + 1
            self._bests.append(best)
            self._means.append(total / count if count else NO_SCORE)

    def __len__(self) -> int:
        return len(self._bests)

    def best_at(self, interval: int) -> float:
        """Returns the best score of the first `interval` ones, or of those that there are."""
        return self._bests[min(interval, len(self)) - 1] if self._bests else NO_SCORE

    def mean_at(self, interval: int) -> float:
        """Returns the mean of the first `interval` scores."""
        return self._means[interval - 1]


class Termination(NamedTuple):
    """Why a run is ended: at `interval` its best score was `best`, and less than `limit`."""

    interval: int
    best: float
    limit: float


class EarlyTerminationPolicy:
    """It is applied at each multiple of `evaluation_interval` that is at least `delay_evaluation`."""

    def __init__(self, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        if int(evaluation_interval) < 1:
            raise UserErrorException(f"evaluation_interval={evaluation_interval}: give 1 or more.")
        if int(delay_evaluation or 0) < 0:
            raise UserErrorException(f"delay_evaluation={delay_evaluation}: give 0 or more.")
        self.evaluation_interval = int(evaluation_interval)
        self.delay_evaluation = int(delay_evaluation or 0)

    def limit(self, curves: Sequence[ScoreCurve], interval: int) -> float:
        """Returns the score that a run must have reached at `interval` to go on. `curves`: of all runs."""
        raise NotImplementedError

    def judge(self, curve: ScoreCurve, curves: Sequence[ScoreCurve], since: int = 0) -> Termination | None:
        """Returns why a run is ended, by those of its intervals that come after `since`; None if it goes on.
        `curves`: of all runs, its own among them."""
        for interval in range(since + 1, len(curve) + 1):
            if interval % self.evaluation_interval or interval < self.delay_evaluation:
                continue
            limit, best = self.limit(curves, interval), curve.best_at(interval)
            if best < limit:
                return Termination(interval, best, limit)
        return None


class NoTerminationPolicy(EarlyTerminationPolicy):
    """All runs go on to their end."""

    def __init__(self) -> None:
        super().__init__()

    def judge(self, curve: ScoreCurve, curves: Sequence[ScoreCurve], since: int = 0) -> Termination | None:
        return None


class BanditPolicy(EarlyTerminationPolicy):
    """Ends runs that are too far from the best one: worse than best / (1 + `slack_factor`), or than best -
    `slack_amount`. Where less is better, worse than best * (1 + `slack_factor`), or than best +
    `slack_amount`."""

    def __init__(
        self,
        evaluation_interval: int = 1,
        slack_factor: float | None = None,
        slack_amount: float | None = None,
        delay_evaluation: int = 0,
    ) -> None:
        super().__init__(evaluation_interval, delay_evaluation)
        if (slack_factor is None) == (slack_amount is None):
            raise UserErrorException("BanditPolicy: give either slack_factor or slack_amount.")
        if (slack_factor or 0) < 0 or (slack_amount or 0) < 0:
            raise UserErrorException("BanditPolicy: slack_factor and slack_amount must not be negative.")
        self.slack_factor = slack_factor
        self.slack_amount = slack_amount

    def limit(self, curves: Sequence[ScoreCurve], interval: int) -> float:
        best = max(curve.best_at(interval) for curve in curves)
        if self.slack_amount is not None:
            return best - self.slack_amount
        ratio = 1 + (self.slack_factor or 0)
        # The quotient of a negative score would be better than the best one.
        return best / ratio if best > 0 else best * ratio


class MedianStoppingPolicy(EarlyTerminationPolicy):
    """Ends runs whose best score is worse than the median of the running averages of all runs."""

    def limit(self, curves: Sequence[ScoreCurve], interval: int) -> float:
        return median(curve.mean_at(interval) for curve in curves if len(curve) >= interval)


class TruncationSelectionPolicy(EarlyTerminationPolicy):
    """Ends the lowest `truncation_percentage` of the runs that have got to the same interval. Of runs that
    are equal none is ended rather than all. `exclude_finished_jobs`: only among runs that have not ended."""

    def __init__(
        self,
        truncation_percentage: int,
        evaluation_interval: int = 1,
        delay_evaluation: int = 0,
        exclude_finished_jobs: bool = False,
    ) -> None:
        super().__init__(evaluation_interval, delay_evaluation)
        if not 1 <= int(truncation_percentage) <= 99:
            raise UserErrorException(
                f"TruncationSelectionPolicy: truncation_percentage={truncation_percentage} is not between 1 "
                "and 99."
            )
        self.truncation_percentage = int(truncation_percentage)
        self.exclude_finished_jobs = exclude_finished_jobs

    def limit(self, curves: Sequence[ScoreCurve], interval: int) -> float:
        bests = sorted(
            curve.best_at(interval)
            for curve in curves
            if len(curve) >= interval and not (self.exclude_finished_jobs and curve.is_final)
        )
        return bests[len(bests) * self.truncation_percentage // 100] if bests else NO_SCORE
