"""How an experiment searches: how many trials with which hyperparameters become runs."""

from __future__ import annotations

import json
import random
import zlib
from typing import Any, NamedTuple

from trainhub_sdk.determined.config import ERROR, HINT, WARNING, ExperimentConfig
from trainhub_sdk.determined.hyperparameters import FIELD, SearchSpace, read_space

SINGLE, GRID, RANDOM = "single", "grid", "random"
_HALVING = ("adaptive_asha", "async_halving")
MAX_TRIALS = 1000


class Sweep(NamedTuple):
    """A search for hyperparameters. `kind`: as in the configuration; `metric`: its name on the hub;
    `max_concurrent`: how many trials Determined would run at once, 0 = all."""

    kind: str
    max_trials: int
    metric: str
    smaller_is_better: bool
    max_concurrent: int
    space: SearchSpace


class Trials(NamedTuple):
    """`hyperparameters`: of each run; `sweep`: None for an experiment of one run."""

    hyperparameters: list[dict[str, Any]]
    sweep: Sweep | None


def read_trials(config: ExperimentConfig, seed: int | None) -> Trials:
    """`seed`: of the values that are drawn; None = as the configuration says, or always the same for the
    same configuration. What is wrong is an error among the findings."""
    kind = config.get("searcher.name", SINGLE)
    space = read_space(config, for_grid=kind == GRID)
    chance = random.Random(_seed(config) if seed is None else seed)  # noqa: S311 - no secrets
    _mention_source(config)
    if kind == SINGLE:
        return Trials([_single(config, space, chance)], None)
    if kind not in (GRID, RANDOM, *_HALVING):
        text = f"{kind!r} is not offered; there are single, grid, random and adaptive_asha."
        config.add(ERROR, "searcher.name", f"{text} Submit the runs of your own search with client.submit.")
        return Trials([], None)
    sweep = Sweep(
        kind=kind,
        max_trials=_max_trials(config, kind, space),
        metric=f"validation/{config.get('searcher.metric', '')}",
        smaller_is_better=bool(config.get("searcher.smaller_is_better", True)),
        max_concurrent=config.integer("searcher.max_concurrent_trials", 16),
        space=space,
    )
    if sweep.max_trials > MAX_TRIALS:
        field = "searcher.max_trials" if config.get("searcher.max_trials") else FIELD
        config.add(ERROR, field, f"{sweep.max_trials:,} runs are too many at once: at most {MAX_TRIALS:,}.")
        return Trials([], sweep)
    _mention_concurrency(config, sweep)
    if kind == GRID:
        points = [point for point, _ in zip(space.grid(), range(sweep.max_trials))]
        return Trials(points, sweep)
    if kind in _HALVING:
        _mention_rungs(config, kind)
    return Trials([space.sample(chance) for _ in range(sweep.max_trials)], sweep)


def _single(config: ExperimentConfig, space: SearchSpace, chance: random.Random) -> dict[str, Any]:
    values = tuple(place.sample(chance) for place in space.ranges)
    for place, value in zip(space.ranges, values):
        field = ".".join((FIELD, *place.path))
        config.add(
            WARNING, field, f"one run has one value: {value!r} was drawn. Write the value that is meant."
        )
    return space.with_values(values)


def _seed(config: ExperimentConfig) -> int:
    seed = config.get("reproducibility.experiment_seed")
    if isinstance(seed, int):
        return seed
    return zlib.crc32(json.dumps(config.get(FIELD, {}), sort_keys=True, default=str).encode())


def _max_trials(config: ExperimentConfig, kind: str, space: SearchSpace) -> int:
    if kind == GRID:
        size = space.grid_size()
        return min(size, config.integer("searcher.max_trials", size, least=1))
    if config.get("searcher.max_trials") is None:
        config.add(ERROR, "searcher", f"needs max_trials, the number of runs of a {kind} search.")
    return config.integer("searcher.max_trials", 1, least=1)


def _mention_source(config: ExperimentConfig) -> None:
    for name in ("source_trial_id", "source_checkpoint_uuid"):
        if config.get(f"searcher.{name}") is not None:
            config.add(
                WARNING,
                f"searcher.{name}",
                "Determined's checkpoints are not here: the run begins without. Put the file into the source "
                'or a dataset, or set "checkpoint": {"resume_from": RUN} for one of a run of this hub.',
            )


def _mention_concurrency(config: ExperimentConfig, sweep: Sweep) -> None:
    for field in ("searcher.max_concurrent_trials", "resources.max_slots"):
        if config.get(field):
            text = f"the hub runs as many of the {sweep.max_trials} at once as there is room for."
            config.add(HINT, field, text)


def _mention_rungs(config: ExperimentConfig, kind: str) -> None:
    rungs = config.get("searcher.max_rungs") or config.get("searcher.num_rungs") or 5
    divisor = config.get("searcher.divisor", 4)
    until = config.get("searcher.max_time") or config.get("searcher.max_length")
    length = "" if until is None else f", each {_length(until, config.get('searcher.time_metric'))} long"
    config.add(
        WARNING,
        "searcher.name",
        f"{kind} becomes random: all trials run to their end{length}. Determined would have let about 1 in "
        f"{divisor} go on at each of up to {rungs} rungs, so this costs more.",
    )


def _length(until: Any, unit: Any) -> str:
    if isinstance(until, dict) and len(until) == 1:
        unit, until = next(iter(until.items()))
    return f"{until} {unit}" if unit else str(until)
