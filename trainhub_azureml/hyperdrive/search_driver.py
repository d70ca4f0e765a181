"""Runs a search in a thread of the process that has submitted it: submits its runs, and ends those that its
policy ends. Each round can be repeated, so that a hub that is away only delays it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from trainhub_azureml.hyperdrive.policies import NoTerminationPolicy, ScoreCurve
from trainhub_azureml.hyperdrive.search_child import SearchChild
from trainhub_azureml.hyperdrive.search_config import SearchLimits
from trainhub_azureml.hyperdrive.search_results import child_rows, read_scores, sign_of
from trainhub_azureml.hyperdrive.search_tags import ALIVE_UNTIL, REASON
from trainhub_azureml.run_results import PARENT
from trainhub_azureml.submission.submit import refusal_text
from trainhub_sdk.api_connection import OVERLOADED, Answer
from trainhub_sdk.client import Client
from trainhub_sdk.errors import HubRefused, HubUnreachable, TrainHubError
from trainhub_sdk.job.hub_calls import HubCalls
from trainhub_sdk.run import Run as HubRun
from trainhub_sdk.states import CANCELED, COMPLETED, FAILED, is_final

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0
BEAT_S = 60.0
# So long an interrupted process waits for the request that is under way.
INTERRUPT_S = 10.0
# So long after its last sign of life the hub ends the search, if the process is gone.
LIFE = timedelta(minutes=15)
_STATUS = {COMPLETED: "FINISHED", FAILED: "FAILED", CANCELED: "KILLED"}


class SearchDriver:
    """`search`: the run on the hub that stands for all of them; `lines`: what has happened, as sentences;
    `error`: why the driver had to give up, "" = it has not."""

    def __init__(
        self,
        client: Client,
        search: HubRun,
        metric: str,
        limits: SearchLimits,
        children: Sequence[SearchChild],
    ) -> None:
        self.search = search
        self.children = children
        self.lines: list[str] = []
        self.error = ""
        self.process_id = os.getpid()
        self._client = client
        self._calls = HubCalls(client.api)
        self._metric = metric
        self._limits = limits
        self._end_at = time.monotonic() + limits.duration_s
        self._beat_at = 0.0
        # Why no more runs are submitted, and whether those that are running are stopped.
        self._reason = ""
        self._stops_runs = False
        self._final_state = COMPLETED
        # What the hub was asked to set the search to, "" before its end.
        self._end_state = ""
        self._is_away = False
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="TrainHub search", daemon=True)

    @property
    def is_over(self) -> bool:
        return self._is_over.is_set()

    def start(self) -> None:
        self._thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Returns whether the search is over, after `timeout_s` at the latest."""
        return self._is_over.wait(timeout_s)

    def interrupt(self) -> str:
        """Ends the search, and leaves the runs that it has submitted. Returns what becomes of them. Raises
        TrainHubError if the hub does not learn of it."""
        self._is_over.set()
        self._thread.join(INTERRUPT_S)
        numbers = [str(child.row.number) for child in self.children if child.row and child.is_active]
        sentence = f"The process that ran the search {self.search.number} was interrupted."
        if numbers:
            sentence += f" Its runs go on; stop them by: trainhub stop {' '.join(numbers)}"
        self._end(CANCELED, sentence)
        return sentence

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                if self._try_round():
                    break
                active = sum(child.is_active for child in self.children)
                self._is_over.wait(min(FIRST_PAUSE_S + active / 10, LONGEST_PAUSE_S))
        except Exception as error:
            self._give_up(f"{type(error).__name__}: {error}.")
            raise
        finally:
            self._is_over.set()

    def _try_round(self) -> bool:
        """Returns whether the search is over."""
        try:
            is_over = self._round()
        except TrainHubError as error:
            if _is_passing(error):
                self._warn_away(str(error))
                return False
            self._give_up(str(error))
            return True
        if self._is_away:
            self._is_away = False
            print("TrainHub: the search goes on.", file=sys.stderr, flush=True)
        return is_over

    def _round(self) -> bool:
        self._check_search()
        self._refresh_children()
        if time.monotonic() > self._end_at:
            self._stop("Its time was over (max_duration_minutes).", COMPLETED, stops_runs=True)
        self._judge_children()
        for child in self.children:
            if child.row and child.is_active and (child.reason or self._stops_runs):
                self._stop_child(child, child.row)
        self._submit_children()
        if any(child.is_active or not (child.row or self._reason) for child in self.children):
            return False
        self._end(self._final_state, self._reason)
        return True

    def _check_search(self) -> None:
        """Gives a sign of life. What has become of the search on the hub decides about its runs."""
        answer = self._client.api.open("GET", f"/api/v1/runs/{self.search.id}/")
        now = _hub_time(answer)
        self.search.update(answer.json())
        if self.search.state == self._end_state:
            pass  # the answer to this process was lost
        elif self.search.state == FAILED:
            # The hub has missed the signs of life, perhaps because this machine slept.
            body = {"run_id": self.search.id, "status": "RUNNING"}
            self._client.api.call("POST", "/api/2.0/mlflow/runs/update", body)
            self.search.state = "Running"
        elif is_final(self.search.state):
            self._stop(f"The search was set to {self.search.state}.", self.search.state, stops_runs=True)
        if time.monotonic() > self._beat_at:
            self._calls.describe(self.search.id, {ALIVE_UNTIL: (now + LIFE).isoformat()})
            self._beat_at = time.monotonic() + BEAT_S

    def _refresh_children(self) -> None:
        rows = {row.id: row for row in child_rows(self._client, self.search.id)}
        active = [(child, child.row) for child in self.children if child.row and child.is_active]
        started = [row.id for _, row in active if row.id in rows and rows[row.id].state != "Queued"]
        scores = {}
        if not isinstance(self._limits.policy, NoTerminationPolicy):
            scores = read_scores(self._calls, started, self._metric, self._limits.goal)
        for child, before in active:
            if before.id not in rows:
                before.state = CANCELED  # somebody has deleted it
                continue
            child.row = rows[before.id]
            if child.row.state != before.state:
                self.lines.append(f"{child.text} is {child.row.state}.")
            child.curve = ScoreCurve(scores.get(before.id, ()), is_final=child.row.is_final)

    def _judge_children(self) -> None:
        curves = [child.curve for child in self.children]
        for child in self.children:
            if not child.is_active or child.reason:
                continue
            verdict = self._limits.policy.judge(child.curve, curves, child.judged)
            child.judged = len(child.curve)
            if verdict is not None:
                sign, policy = sign_of(self._limits.goal), type(self._limits.policy).__name__
                child.reason = (
                    f"{policy}: after {verdict.interval} values of {self._metric} the best was "
                    f"{sign * verdict.best:g}, and the limit is {sign * verdict.limit:g}."
                )

    def _stop_child(self, child: SearchChild, row: HubRun) -> None:
        if row.state == "CancelRequested":
            return
        if child.reason:
            self._calls.describe(row.id, {REASON: child.reason})
        row.cancel()
        self.lines.append(f"{child.text} is stopped. {child.reason or self._reason}")

    def _submit_children(self) -> None:
        free = self._limits.at_once - sum(child.is_active for child in self.children)
        for index, child in enumerate(self.children):
            if self._is_over.is_set():  # interrupted
                return
            if child.row is None and not self._reason and free > 0:
                self._submit(index, child)
                free -= child.is_active
            if child.row is not None and not child.is_described:
                # The parent as a tag of the protocol, and not only of the spec, makes it a part on the pages.
                self._calls.describe(child.row.id, {PARENT: self.search.id}, child.params)
                child.is_described = True

    def _submit(self, index: int, child: SearchChild) -> None:
        try:
            # A run whose answer was lost is the same one when it is submitted again.
            key = f"{self.search.id}-{index}"
            child.row = self._client.submit(child.spec_in(self.search.id), idempotency_key=key)
        except HubRefused as error:
            if _is_passing(error):
                raise
            self._stop(refusal_text(error), FAILED)
        else:
            self.lines.append(f"{child.text} is submitted: {child.row.url}")

    def _stop(self, reason: str, state: str, *, stops_runs: bool = False) -> None:
        """Submits no more runs. The search gets `state` when those that are running have ended."""
        if not self._reason or (stops_runs and not self._stops_runs):
            self._reason, self._final_state, self._stops_runs = reason, state, stops_runs

    def _end(self, state: str, reason: str) -> None:
        states = {child.row.state for child in self.children if child.row}
        if state == COMPLETED and states == {FAILED}:
            state, reason = FAILED, reason or "All its runs have failed."
        self._calls.describe(self.search.id, {REASON: reason, ALIVE_UNTIL: ""})
        self._end_state = state
        if self.search.state != state:
            self._calls.end_run(self.search.id, _STATUS[state])

    def _warn_away(self, reason: str) -> None:
        if not self._is_away:
            self._is_away = True
            print(f"TrainHub: the search waits: {reason}", file=sys.stderr, flush=True)

    def _give_up(self, reason: str) -> None:
        self.error = f"The search {self.search.number} was given up: {reason} Its runs go on."
        print(f"TrainHub: {self.error}", file=sys.stderr, flush=True)


def _is_passing(error: TrainHubError) -> bool:
    """Returns whether the hub may answer otherwise later."""
    if isinstance(error, HubRefused):
        return error.status in OVERLOADED or error.status >= 500
    return isinstance(error, HubUnreachable)


def _hub_time(answer: Answer) -> datetime:
    """Returns the time by the hub's clock, which decides whether the search is alive."""
    date: Any = answer.headers.get("Date")
    return parsedate_to_datetime(date) if date else datetime.now(timezone.utc)
