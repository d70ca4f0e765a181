"""Params of runs; a param never changes its value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tracking.models import Param
from trainhub_launch.errors import SpecError

# Characters of a value that the index contains.
SHORT = 200
MAX_PARAMS_PER_RUN = 10_000


@dataclass(frozen=True)
class ParamDifference:
    key: str
    before: str
    now: str


class ParamsChanged(Exception):
    """A request tried to change params; `differences` are all of them."""

    def __init__(self, differences: tuple[ParamDifference, ...]) -> None:
        super().__init__(", ".join(item.key for item in differences))
        self.differences = differences


def put(run_id: str, experiment_id: int, params: Mapping[str, str]) -> None:
    """Stores params. Raises ParamsChanged for a different value and SpecError for too many; roll back
    then."""
    if not params:
        return
    stored = dict(Param.objects.filter(run_id=run_id, key__in=params).values_list("key", "value"))
    # Sorted, so that two writers lock the same params in the same order and cannot deadlock.
    new = sorted(params.keys() - stored.keys())
    if new:
        count = Param.objects.filter(run_id=run_id).count()
        if count + len(new) > MAX_PARAMS_PER_RUN:
            raise SpecError(
                "params",
                f"a run may have {MAX_PARAMS_PER_RUN} params, and this one has {count}; log a file instead",
            )
        rows = [_row(run_id, experiment_id, key, params[key]) for key in new]
        Param.objects.bulk_create(rows, ignore_conflicts=True)
        # Of two concurrent requests, the second one to commit finds the other's values.
        stored |= dict(Param.objects.filter(run_id=run_id, key__in=new).values_list("key", "value"))
    changed = tuple(
        ParamDifference(key, stored[key], params[key]) for key in sorted(params) if stored[key] != params[key]
    )
    if changed:
        raise ParamsChanged(changed)


def number_of(value: str) -> float | None:
    """Returns the finite number that the text represents, or None."""
    try:
        number = float(value)
    except ValueError:
        return None
    # Python also parses 1_000 as a number.
    return number if math.isfinite(number) and "_" not in value else None


def _row(run_id: str, experiment_id: int, key: str, value: str) -> Param:
    return Param(
        run_id=run_id,
        experiment_id=experiment_id,
        key=key,
        value=value,
        short=value[:SHORT],
        number=number_of(value),
    )
