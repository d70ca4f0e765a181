"""The configuration of a search. Everything in it may be changed until it is submitted."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Mapping
from enum import Enum
from typing import Any

from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.hyperdrive.policies import EarlyTerminationPolicy, NoTerminationPolicy
from trainhub_azureml.hyperdrive.samplers import BayesianParameterSampling, HyperParameterSampling
from trainhub_azureml.run_configuration import ScriptRunConfig
from trainhub_azureml.submission.command_line import argument_text
from trainhub_azureml.submission.run_spec import read_config

MAX_RUNS = 1000
# So many at once also if the search names no number: more would only fill the queue of the hub.
MAX_CONCURRENT_RUNS = 100
WEEK_MINUTES, MAX_MINUTES = 10080, 10**6


class PrimaryMetricGoal(Enum):
    MAXIMIZE = "MAXIMIZE"
    MINIMIZE = "MINIMIZE"


class HyperDriveConfig:
    """`max_total_runs`: there are fewer, if there are not so many sets of values, and None = all of these;
    `max_concurrent_runs`: None = all, but at most MAX_CONCURRENT_RUNS; `run_config`, or `estimator`: what
    each run does, with `--NAME VALUE` of each hyperparameter after its own arguments."""

    def __init__(
        self,
        hyperparameter_sampling: HyperParameterSampling,
        primary_metric_name: str,
        primary_metric_goal: PrimaryMetricGoal | str,
        max_total_runs: int | None,
        max_concurrent_runs: int | None = None,
        max_duration_minutes: int = WEEK_MINUTES,
        policy: EarlyTerminationPolicy | None = None,
        estimator: Any = None,
        run_config: Any = None,
        resume_from: Any = None,
        resume_child_runs: Any = None,
        pipeline: Any = None,
        debug_flag: Any = None,
        custom_run_id: Any = None,
    ) -> None:
        if pipeline is not None:
            raise UserErrorException("HyperDriveConfig: pipeline is not offered: give run_config.")
        if resume_from or resume_child_runs:
            raise UserErrorException(
                "HyperDriveConfig: resume_from and resume_child_runs are not offered: leave them out, and "
                "the search begins anew."
            )
        self.hyperparameter_sampling = hyperparameter_sampling
        self.primary_metric_name = primary_metric_name
        self.primary_metric_goal = primary_metric_goal
        self.max_total_runs = max_total_runs
        self.max_concurrent_runs = max_concurrent_runs
        self.max_duration_minutes = max_duration_minutes
        self.policy = policy
        self.estimator = estimator
        self.run_config = run_config
        self.checked()

    def checked(self) -> SearchLimits:
        """Returns the numbers of the search. Raises UserErrorException for what is wrong."""
        if not isinstance(self.hyperparameter_sampling, HyperParameterSampling):
            raise UserErrorException(
                "hyperparameter_sampling: give RandomParameterSampling, GridParameterSampling or "
                "BayesianParameterSampling."
            )
        if not self.primary_metric_name or not isinstance(self.primary_metric_name, str):
            raise UserErrorException("primary_metric_name: give the name that the script logs.")
        return SearchLimits(self)


class SearchLimits:
    """The numbers, the goal and the policy of a configuration, checked."""

    def __init__(self, config: HyperDriveConfig) -> None:
        total = config.max_total_runs
        if total is None:
            total = config.hyperparameter_sampling.size
        self.total = _whole("max_total_runs", total, MAX_RUNS)
        at_once = config.max_concurrent_runs
        self.at_once = min(
            self.total,
            MAX_CONCURRENT_RUNS
            if at_once is None
            else _whole("max_concurrent_runs", at_once, MAX_CONCURRENT_RUNS),
        )
        self.duration_s = 60 * _whole("max_duration_minutes", config.max_duration_minutes, MAX_MINUTES)
        self.goal = read_goal(config.primary_metric_goal)
        self.policy = NoTerminationPolicy() if config.policy is None else config.policy
        if not isinstance(self.policy, EarlyTerminationPolicy):
            raise UserErrorException(
                f"policy: {self.policy!r} is none; give BanditPolicy, MedianStoppingPolicy, "
                "TruncationSelectionPolicy or NoTerminationPolicy."
            )
        is_bayesian = isinstance(config.hyperparameter_sampling, BayesianParameterSampling)
        if is_bayesian and not isinstance(self.policy, NoTerminationPolicy):
            raise UserErrorException(
                "policy: BayesianParameterSampling takes none; leave it out, or use RandomParameterSampling."
            )


def read_goal(goal: PrimaryMetricGoal | str) -> PrimaryMetricGoal:
    try:
        return PrimaryMetricGoal(goal.upper() if isinstance(goal, str) else goal)
    except ValueError as error:
        raise UserErrorException(
            f"primary_metric_goal: {goal!r} is none; give PrimaryMetricGoal.MAXIMIZE or "
            "PrimaryMetricGoal.MINIMIZE."
        ) from error


def script_config_of(config: HyperDriveConfig) -> ScriptRunConfig:
    """Returns what each run does, without hyperparameters. Raises UserErrorException."""
    if (config.run_config is None) == (config.estimator is None):
        raise UserErrorException("HyperDriveConfig: give either run_config or estimator.")
    return read_config(config.estimator if config.run_config is None else config.run_config)


def config_with_values(base: ScriptRunConfig, values: Mapping[str, Any]) -> ScriptRunConfig:
    """Returns a copy of the configuration in which the hyperparameters come after its own arguments, where
    argparse takes the last of several."""
    texts: list[str] = []
    for name, value in values.items():
        texts += [name if name.startswith("-") else f"--{name}", argument_text(value)]
    config = copy.copy(base)
    command = base.command or base.run_config.command
    if command:
        words = [command] if isinstance(command, str) else list(command)
        config.command = [*words, *map(shlex.quote, texts)]
    else:
        own = base.arguments if base.arguments is not None else base.run_config.arguments
        config.arguments = [*own, *texts]
    return config


def _whole(field: str, value: Any, largest: int) -> int:
    is_whole = value.is_integer() if isinstance(value, float) else isinstance(value, int)
    if not is_whole or isinstance(value, bool):
        raise UserErrorException(f"{field}={value!r}: give a whole number.")
    if not 1 <= value <= largest:
        raise UserErrorException(f"{field}={value}: give a number from 1 to {largest:,}.")
    return int(value)
