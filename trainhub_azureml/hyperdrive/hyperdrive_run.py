"""A search of hyperparameters as a run: its children are the runs with one set of values each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trainhub_azureml.exceptions import ActivityFailedException, UserErrorException
from trainhub_azureml.hyperdrive.policies import NO_SCORE, ScoreCurve
from trainhub_azureml.hyperdrive.search_config import HyperDriveConfig, PrimaryMetricGoal, read_goal
from trainhub_azureml.hyperdrive.search_results import child_rows, read_scores, sign_of
from trainhub_azureml.hyperdrive.search_tags import HYPERPARAMETERS, REASON
from trainhub_azureml.run import Run
from trainhub_azureml.run_results import SEARCH
from trainhub_sdk.states import CANCELED, COMPLETED, FAILED

if TYPE_CHECKING:
    from trainhub_azureml.experiment import Experiment
    from trainhub_azureml.hyperdrive.search_driver import SearchDriver
    from trainhub_sdk.run import Run as HubRun

PAUSE_S = 0.5


class HyperDriveRun(Run):
    """`Experiment.submit` returns it at once; a thread of this process submits its runs."""

    def __init__(
        self,
        experiment: Experiment,
        run_id: str,
        hyperdrive_config: HyperDriveConfig | None = None,
        **_others: Any,
    ) -> None:
        super().__init__(experiment, run_id)
        self._config = hyperdrive_config
        self._driver: SearchDriver | None = None

    @property
    def hyperdrive_config(self) -> HyperDriveConfig | None:
        """The configuration, None in a process that has not submitted the search."""
        return self._config

    def wait_for_completion(
        self, show_output: bool = False, wait_post_processing: bool = False, raise_on_error: bool = True
    ) -> dict[str, Any]:
        """Returns the details when the search is over; with `show_output` it prints what happens meanwhile.
        Interrupting it does not stop the search. Raises ActivityFailedException if the search has failed or
        was canceled, unless `raise_on_error` is False."""
        row = self._row()
        if show_output:
            print(f"Search {row.number}: {row.url}", flush=True)
        if self._driver is not None:
            self._follow(self._driver, show_output=show_output)
        row.wait(raise_on_error=False)
        if raise_on_error and row.state != COMPLETED:
            raise ActivityFailedException(
                f"The search {row.number} is {row.state}. {row.tags.get(REASON, '')}".rstrip()
            )
        return self.get_details()

    def cancel(self) -> Any:
        """Ends the search and stops its runs. Repeating this has no effect. Returns True."""
        if not self._row(refresh=True).is_final:
            self._calls().end_run(self.id, "KILLED")
        for row in self._child_rows():
            if not row.is_final:
                row.cancel()
        return True

    def get_metrics(self, name: str | None = None, recursive: bool = False, **_others: Any) -> dict[str, Any]:
        """Returns what each of its runs has logged, by their ids."""
        return {child.id: child.get_metrics(name) for child in self.get_children()}

    def get_hyperparameters(self) -> dict[str, str]:
        """Returns the hyperparameters of each of its runs as JSON, by their ids."""
        return {row.id: row.tags.get(HYPERPARAMETERS, "{}") for row in self._child_rows()}

    def get_best_run_by_primary_metric(
        self, include_failed: bool = True, include_canceled: bool = True, **_others: Any
    ) -> Run | None:
        """Returns the run with the best value of the primary metric; None if none has logged it."""
        excluded = [
            state for state, is_in in ((FAILED, include_failed), (CANCELED, include_canceled)) if not is_in
        ]
        rows = [row for row in self._child_rows() if row.state not in excluded]
        ranking = self._ranking(rows)
        return Run._of_hub(self.experiment, ranking[0][0]) if ranking and ranking[0][1] > NO_SCORE else None

    def get_children_sorted_by_primary_metric(
        self, top: int = 0, reverse: bool = False, discard_no_metric: bool = False
    ) -> list[dict[str, Any]]:
        """Returns `run_id`, `hyperparameters` as JSON, `best_primary_metric` and `status` of its runs, the
        best first, or last with `reverse`; runs without the metric come at the end in any case. `top`: so
        many of them, 0 = all."""
        ranking = self._ranking(list(self._child_rows()))
        scored = [entry for entry in ranking if entry[1] > NO_SCORE]
        others = [] if discard_no_metric else [entry for entry in ranking if entry[1] <= NO_SCORE]
        if reverse:
            scored.reverse()
        sign = sign_of(self._goal())
        rows = [
            {
                "run_id": row.id,
                "hyperparameters": row.tags.get(HYPERPARAMETERS, "{}"),
                "best_primary_metric": sign * score if score > NO_SCORE else None,
                "status": row.state,
            }
            for row, score in [*scored, *others]
        ]
        return rows[:top] if top else rows

    def _follow(self, driver: SearchDriver, *, show_output: bool) -> None:
        printed = 0
        try:
            while True:
                is_over = driver.wait(PAUSE_S)
                for line in driver.lines[printed:] if show_output else ():
                    print(line, flush=True)
                    printed += 1
                if is_over:
                    break
        except KeyboardInterrupt:
            print(f"The search {driver.search.number} goes on in this process.", flush=True)
            raise
        if driver.error:
            raise ActivityFailedException(driver.error)

    def _ranking(self, rows: Sequence[HubRun]) -> list[tuple[HubRun, float]]:
        """Returns each row with its best score, the best first."""
        facts = self._facts()
        scores = read_scores(
            self._calls(), [row.id for row in rows], facts["primary_metric_name"], self._goal()
        )
        bests = []
        for row in rows:
            curve = ScoreCurve(scores[row.id])
            bests.append((row, curve.best_at(len(curve))))
        return sorted(bests, key=lambda entry: (-entry[1], entry[0].number))

    def _children(self) -> Iterator[Run]:
        for row in self._child_rows():
            yield Run._of_hub(self.experiment, row)

    def _child_rows(self) -> Iterator[HubRun]:
        return child_rows(self.experiment.workspace._client(), self.id)

    def _goal(self) -> PrimaryMetricGoal:
        return read_goal(self._facts()["primary_metric_goal"])

    def _facts(self) -> dict[str, Any]:
        text = self._row().tags.get(SEARCH) or self._row(refresh=True).tags.get(SEARCH)
        if not text:
            raise UserErrorException(f"Run {self._row().number} is no search of HyperDrive.")
        facts: dict[str, Any] = json.loads(text)
        return facts

    def _end(self, status: str, *, set_status: bool) -> None:
        raise UserErrorException("A search ends by itself; cancel() ends it before.")
