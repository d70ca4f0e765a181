"""Which values the runs of a search get, which runs its policies end, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.hyperdrive import parameter_expressions as expressions
from trainhub_azureml.hyperdrive.parameter_expressions import ParameterExpression, choice
from trainhub_azureml.hyperdrive.policies import (
    BanditPolicy,
    EarlyTerminationPolicy,
    MedianStoppingPolicy,
    NoTerminationPolicy,
    ScoreCurve,
    Termination,
    TruncationSelectionPolicy,
)
from trainhub_azureml.hyperdrive.samplers import (
    BayesianParameterSampling,
    GridParameterSampling,
    RandomParameterSampling,
)
from trainhub_azureml.hyperdrive.search_config import (
    HyperDriveConfig,
    PrimaryMetricGoal,
    config_with_values,
    script_config_of,
)
from trainhub_azureml.run_configuration import RunConfiguration, ScriptRunConfig


def judge(policy: EarlyTerminationPolicy, *scores: list[float], since: int = 0) -> list[int]:
    """Returns the interval at which each run ends, 0 for one that goes on."""
    curves = [ScoreCurve(values) for values in scores]
    verdicts = [policy.judge(curve, curves, since) for curve in curves]
    return [verdict.interval if verdict else 0 for verdict in verdicts]


class TestExpressions:
    @pytest.mark.parametrize(
        "options", [(1, 2, 3), ([1, 2, 3],), (range(1, 4),), ((number for number in (1, 2, 3)),)]
    )
    def test_a_choice_takes_values_or_one_list_of_them(self, options: tuple[Any, ...]) -> None:
        assert choice(*options).options == (1, 2, 3)

    def test_a_choice_of_one_text_or_of_lists_is_not_taken_apart(self) -> None:
        assert choice("adam").options == ("adam",)
        assert choice([1, 2], [3]).options == ([1, 2], [3])

    @pytest.mark.parametrize(
        ("name", "arguments", "expected"),
        [
            ("uniform", (2, 4), lambda random: random.uniform(2, 4)),
            ("loguniform", (-6, -1), lambda random: math.exp(random.uniform(-6, -1))),
            ("quniform", (16, 128, 16), lambda random: round(random.uniform(16, 128) / 16) * 16),
            ("qloguniform", (0, 3, 2), lambda random: round(math.exp(random.uniform(0, 3)) / 2) * 2),
            ("normal", (10, 3), lambda random: random.gauss(10, 3)),
            ("lognormal", (0, 1), lambda random: math.exp(random.gauss(0, 1))),
            ("qnormal", (10, 3, 0.5), lambda random: round(random.gauss(10, 3) / 0.5) * 0.5),
            ("qlognormal", (0, 1, 0.5), lambda random: round(math.exp(random.gauss(0, 1)) / 0.5) * 0.5),
            ("randint", (7,), lambda random: random.randrange(7)),
        ],
    )
    def test_an_expression_draws_from_its_distribution(
        self, name: str, arguments: tuple[float, ...], expected: Callable[[Random], float]
    ) -> None:
        drawn = getattr(expressions, name)(*arguments).draw(Random(3))  # noqa: S311 - no secret
        value = expected(Random(3))  # noqa: S311 - no secret
        # `type=int` of argparse refuses 32.0.
        assert (drawn, type(drawn)) == (value, type(value))

    @pytest.mark.parametrize(
        ("name", "arguments", "sentence"),
        [
            ("choice", ([],), "choice: give at least one value"),
            ("uniform", (2, 1), "min_value=2 is greater than max_value=1"),
            ("normal", (0, -1), "sigma=-1 is negative"),
            ("qnormal", (0, 1, 0), "q=0 is not positive"),
            ("randint", (0,), "upper=0 is not 1 or more"),
        ],
    )
    def test_a_wrong_expression_is_refused(
        self, name: str, arguments: tuple[Any, ...], sentence: str
    ) -> None:
        with pytest.raises(UserErrorException, match=sentence):
            getattr(expressions, name)(*arguments)


class TestSampling:
    SPACE = {"--lr": choice(0.1, 0.2), "batch": choice(range(2))}

    def test_a_grid_has_each_set_once_in_order_and_not_more_than_asked_for(self) -> None:
        sets = GridParameterSampling(self.SPACE).draw_sets(3)
        assert sets == [
            {"--lr": 0.1, "batch": 0},
            {"--lr": 0.1, "batch": 1},
            {"--lr": 0.2, "batch": 0},
        ]
        assert len(GridParameterSampling(self.SPACE).draw_sets(100)) == 4

    def test_random_sets_are_all_different_and_end_with_the_space(self) -> None:
        sets = RandomParameterSampling({**self.SPACE, "same": choice(1, 1)}).draw_sets(100)
        assert Counter((values["--lr"], values["batch"]) for values in sets) == {
            (rate, batch): 1 for rate in (0.1, 0.2) for batch in (0, 1)
        }

    def test_rounded_numbers_end_too(self) -> None:
        sets = RandomParameterSampling({"x": expressions.quniform(0, 3, 1)}).draw_sets(50)
        assert sorted(values["x"] for values in sets) == [0, 1, 2, 3]

    def test_a_seed_draws_the_same_sets_again(self) -> None:
        space = {"x": expressions.normal(0, 1)}
        first, second = (RandomParameterSampling(space, {"seed": 5}).draw_sets(4) for _ in range(2))
        assert first == second
        assert first != RandomParameterSampling(space, {"seed": 6}).draw_sets(4)

    def test_bayesian_sampling_draws_at_random_and_says_so(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert len(BayesianParameterSampling({"x": expressions.uniform(0, 1)}).draw_sets(3)) == 3
        assert "the values are drawn at random" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("sampling", "space", "sentence"),
        [
            (RandomParameterSampling, {}, "at least one hyperparameter"),
            (RandomParameterSampling, {"x": 3}, r"x is 3; give an expression, such as choice\(3\)"),
            (GridParameterSampling, {"x": expressions.uniform(0, 1)}, "x is uniform; use choice"),
            (BayesianParameterSampling, {"x": expressions.normal(0, 1)}, "x is normal; use one of choice"),
        ],
    )
    def test_a_wrong_space_is_refused(
        self, sampling: Any, space: dict[str, ParameterExpression], sentence: str
    ) -> None:
        with pytest.raises(UserErrorException, match=sentence):
            sampling(space)


class TestPolicies:
    def test_bandit_ends_what_is_below_the_quotient_of_the_best(self) -> None:
        # 0.8 / 1.2 = 0.666…
        assert judge(BanditPolicy(slack_factor=0.2), [0.8], [0.67], [0.66]) == [0, 0, 1]

    def test_bandit_ends_what_is_below_the_difference_to_the_best(self) -> None:
        assert judge(BanditPolicy(slack_amount=0.2), [0.8], [0.61], [0.59]) == [0, 0, 1]

    def test_bandit_compares_the_best_values_up_to_the_same_interval(self) -> None:
        policy = BanditPolicy(slack_factor=0.2)
        # At 1 both are equal; the third value of the older run does not count against the younger.
        assert judge(policy, [0.5, 0.7, 0.9], [0.5]) == [0, 0]
        # What was good once stays good.
        assert judge(policy, [0.5, 0.6], [0.6, 0.1]) == [0, 0]

    def test_bandit_where_less_is_better(self) -> None:
        # Losses 1.0, 1.19 and 1.21 as scores; the limit is 1.0 * 1.2.
        assert judge(BanditPolicy(slack_factor=0.2), [-1.0], [-1.19], [-1.21]) == [0, 0, 1]

    def test_a_policy_is_applied_at_multiples_of_its_interval_after_its_delay(self) -> None:
        policy = BanditPolicy(evaluation_interval=2, slack_factor=0.2, delay_evaluation=5)
        best, bad = [1.0] * 8, [0.1] * 8
        assert judge(policy, best[:5], bad[:5]) == [0, 0]
        assert judge(policy, best, bad) == [0, 6]
        assert judge(policy, best, bad, since=6) == [0, 8]

    def test_median_ends_what_is_worse_than_the_median_of_the_running_averages(self) -> None:
        # Averages of the first two values: 0.35, 0.5, 0.7; their median is 0.5.
        curves = [0.3, 0.4], [0.4, 0.6], [0.6, 0.8]
        policy = MedianStoppingPolicy(evaluation_interval=2)
        assert judge(policy, *curves) == [2, 0, 0]
        # Its best value counts, not its average: 0.45 of [0.51, 0.39].
        assert judge(policy, [0.51, 0.39], *curves[1:]) == [0, 0, 0]

    def test_median_takes_the_averages_of_runs_that_have_got_so_far(self) -> None:
        assert judge(MedianStoppingPolicy(), [0.9], [0.1, 0.2]) == [0, 1]
        assert judge(MedianStoppingPolicy(delay_evaluation=2), [0.9], [0.1, 0.2]) == [0, 0]

    def test_truncation_ends_the_lowest_percentage(self) -> None:
        scores = [[0.1], [0.2], [0.3], [0.4], [0.5]]
        assert judge(TruncationSelectionPolicy(20), *scores) == [1, 0, 0, 0, 0]
        assert judge(TruncationSelectionPolicy(50), *scores) == [1, 1, 0, 0, 0]
        assert judge(TruncationSelectionPolicy(19), *scores) == [0, 0, 0, 0, 0]

    def test_truncation_compares_at_the_same_interval_and_ends_none_of_equals(self) -> None:
        policy = TruncationSelectionPolicy(50)
        assert judge(policy, [0.2], [0.1, 0.9]) == [0, 1]
        assert judge(policy, [0.5], [0.5], [0.5]) == [0, 0, 0]

    def test_truncation_may_leave_out_runs_that_have_ended(self) -> None:
        curves = [ScoreCurve([0.1], is_final=True), ScoreCurve([0.2]), ScoreCurve([0.3])]
        keep, leave_out = (
            TruncationSelectionPolicy(50, exclude_finished_jobs=is_left_out) for is_left_out in (False, True)
        )
        assert keep.judge(curves[1], curves) is None
        assert leave_out.judge(curves[1], curves) == Termination(1, 0.2, 0.3)

    def test_no_policy_ends_nothing(self) -> None:
        assert judge(NoTerminationPolicy(), [1.0], [-1e9]) == [0, 0]

    def test_what_is_no_number_is_worse_than_any(self) -> None:
        assert judge(BanditPolicy(slack_factor=0.2), [0.8, 0.8], [math.nan, 0.8]) == [0, 1]
        assert judge(BanditPolicy(slack_factor=0.2), [math.nan], [math.nan]) == [0, 0]

    @pytest.mark.parametrize(
        ("make", "sentence"),
        [
            (BanditPolicy, "either slack_factor or slack_amount"),
            (lambda: BanditPolicy(slack_factor=0.1, slack_amount=1), "either slack_factor or slack_amount"),
            (lambda: BanditPolicy(slack_factor=-0.1), "must not be negative"),
            (lambda: MedianStoppingPolicy(evaluation_interval=0), "evaluation_interval=0"),
            (lambda: MedianStoppingPolicy(delay_evaluation=-1), "delay_evaluation=-1"),
            (lambda: TruncationSelectionPolicy(100), "truncation_percentage=100"),
        ],
    )
    def test_a_wrong_policy_is_refused(self, make: Callable[[], object], sentence: str) -> None:
        with pytest.raises(UserErrorException, match=sentence):
            make()


class TestConfigurations:
    SPACE = {"--lr": choice(0.1), "depth": choice(2), "-b": choice("two words")}

    def config(self, **others: Any) -> HyperDriveConfig:
        fields = {
            "hyperparameter_sampling": GridParameterSampling(self.SPACE),
            "primary_metric_name": "accuracy",
            "primary_metric_goal": PrimaryMetricGoal.MAXIMIZE,
            "max_total_runs": 8,
            "run_config": ScriptRunConfig(".", "train.py"),
        }
        return HyperDriveConfig(**{**fields, **others})

    def test_hyperparameters_come_after_the_own_arguments_of_a_script(self) -> None:
        base = ScriptRunConfig(".", "train.py", arguments=["--lr", 1])
        (values,) = GridParameterSampling(self.SPACE).draw_sets(5)
        arguments = ["--lr", 1, "--lr", "0.1", "--depth", "2", "-b", "two words"]
        assert config_with_values(base, values).arguments == arguments
        assert base.arguments == ["--lr", 1]

    def test_hyperparameters_come_at_the_end_of_a_command(self) -> None:
        base = ScriptRunConfig(".", command="python train.py --fast")
        (values,) = GridParameterSampling(self.SPACE).draw_sets(5)
        words = ["python train.py --fast", "--lr", "0.1", "--depth", "2", "-b", "'two words'"]
        assert config_with_values(base, values).command == words

    def test_without_a_number_all_runs_start_at_once_up_to_a_hundred(self) -> None:
        assert self.config().checked().at_once == 8
        assert self.config(max_total_runs=1000).checked().at_once == 100
        assert self.config(max_concurrent_runs=3).checked().at_once == 3
        grid = GridParameterSampling({"--lr": choice(0.1, 0.2), "--depth": choice([1, 2, 3])})
        assert self.config(hyperparameter_sampling=grid, max_total_runs=None).checked().total == 6

    @pytest.mark.parametrize("goal", ["minimize", "MINIMIZE", PrimaryMetricGoal.MINIMIZE])
    def test_a_goal_may_be_a_word(self, goal: Any) -> None:
        assert self.config(primary_metric_goal=goal).checked().goal is PrimaryMetricGoal.MINIMIZE

    @pytest.mark.parametrize(
        ("fields", "sentence"),
        [
            ({"hyperparameter_sampling": {}}, "hyperparameter_sampling: give RandomParameterSampling"),
            ({"primary_metric_name": ""}, "primary_metric_name: give the name"),
            (
                {"primary_metric_goal": "best"},
                "give PrimaryMetricGoal.MAXIMIZE or PrimaryMetricGoal.MINIMIZE",
            ),
            ({"max_total_runs": 0}, "max_total_runs=0: give a number from 1 to 1,000"),
            ({"max_total_runs": 1001}, "max_total_runs=1001: give a number from 1 to 1,000"),
            ({"max_concurrent_runs": 101}, "max_concurrent_runs=101: give a number from 1 to 100"),
            ({"max_duration_minutes": 0.5}, "max_duration_minutes=0.5: give a whole number"),
            ({"policy": "bandit"}, "policy: 'bandit' is none; give BanditPolicy"),
            ({"pipeline": "p"}, "pipeline is not offered"),
            ({"resume_from": ["run"]}, "resume_from and resume_child_runs are not offered"),
        ],
    )
    def test_a_wrong_field_is_refused(self, fields: dict[str, Any], sentence: str) -> None:
        with pytest.raises(UserErrorException, match=sentence):
            self.config(**fields)

    def test_bayesian_sampling_takes_no_policy(self) -> None:
        sampling = BayesianParameterSampling({"x": choice(1)})
        with pytest.raises(UserErrorException, match="BayesianParameterSampling takes none; leave it out"):
            self.config(hyperparameter_sampling=sampling, policy=MedianStoppingPolicy())

    def test_what_runs_is_given_once(self) -> None:
        with pytest.raises(UserErrorException, match="give either run_config or estimator"):
            script_config_of(self.config(estimator=object()))
        with pytest.raises(UserErrorException, match="give either run_config or estimator"):
            script_config_of(self.config(run_config=None))

    @pytest.mark.parametrize("field", ["run_config", "estimator"])
    def test_what_runs_is_a_script(self, field: str) -> None:
        fields = {"run_config": None, "estimator": None, field: RunConfiguration()}
        sentence = "RunConfiguration is not offered. Submit a ScriptRunConfig"
        with pytest.raises(UserErrorException, match=sentence):
            script_config_of(self.config(**fields))
