"""Derives an AttemptFact from the files in the attempt's folder and from nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from trainhub_launch.json_types import JsonObject
from trainhub_launch.report import AttemptFact, DaemonCall, MemberFact, OutputFile
from trainhub_launch.states import PHASES, Phase, RankState
from trainhub_node import records
from trainhub_node.attempts import attempt_list
from trainhub_node.rundir import DAEMON_CALL, RunDir

MAX_RANK_RECORD_BYTES = 65536
MAX_DAEMONS = 512
MAX_RANK_RECORDS = 8192
# JavaScript and msgpack of other languages cannot represent larger integers exactly.
MAX_INTEGER = 2**53


class AttemptState:
    """The state of one attempt. Records are read again only after they changed."""

    def __init__(self, rundir: RunDir) -> None:
        self.rundir = rundir
        self._cache: dict[str, tuple[tuple[int, int, int], object]] = {}

    def fact(self, logs: Mapping[str, int], *, extra_warnings: tuple[str, ...] = ()) -> AttemptFact:
        agent, state, claim = self.agent(), self.state(), self.claim()
        stop = self._read(self.rundir.stop) or {}
        outputs = self._read(self.rundir.outputs_record) or {}
        # The agent's times win: a phase that both know was entered when the agent saw it.
        reached = {**state.get("phase_at", {}), **agent["phase_at"]}
        if attempt_list.READY_PORTS not in claim:
            reached.pop(Phase.READY, None)
        phase_at: dict[str, float] = {phase: reached[phase] for phase in PHASES if phase in reached}
        warnings = (
            *state.get("warnings", ()),
            *agent["warnings"],
            *outputs.get("warnings", ()),
            *extra_warnings,
        )
        return AttemptFact(
            run=self.rundir.run,
            attempt=self.rundir.attempt,
            phase=Phase(next(reversed(phase_at), Phase.ACCEPTED)),
            phase_at=phase_at,
            members=tuple(self._member(process, logs) for process in self.order()["command"]["processes"]),
            logs=dict(logs),
            outputs=tuple(OutputFile(**file) for file in outputs.get("files", ())),
            error=state.get("error") or agent["error"] or stop.get("error", ""),
            error_kind=state.get("error_kind") or agent["error_kind"] or stop.get("error_kind", ""),
            stopping=state.get("stopping") or agent["stopping"],
            warnings=warnings,
            ports=tuple(claim.get("held", ())) if Phase.READY in phase_at else (),
            versions=state.get("versions", {}) if Phase.READY in phase_at else {},
            daemons=tuple(self._daemon_calls()),
            changed_inputs=tuple(state.get("changed_inputs", ())),
        )

    @property
    def is_ready(self) -> bool:
        return Phase.READY in self.state().get("phase_at", {})

    @property
    def is_running(self) -> bool:
        """Whether the ranks have been started, also if they have ended since."""
        return Phase.RUNNING in self.state().get("phase_at", {})

    @property
    def has_ready_ports(self) -> bool:
        """Whether ports are reserved. The hub chooses from them when it learns that this node is ready."""
        return attempt_list.READY_PORTS in self.claim()

    def claim(self) -> dict[str, Any]:
        return self._read(self.rundir.claim) or {}

    def order(self) -> dict[str, Any]:
        """Returns the final order where there are two."""
        return dict(self._read(self.rundir.go) or self._read(self.rundir.order))

    def agent(self) -> dict[str, Any]:
        return attempt_list.with_defaults(self._read(self.rundir.agent))

    def state(self) -> dict[str, Any]:
        return self._read(self.rundir.state) or {}

    def child(self) -> dict[str, Any] | None:
        record: dict[str, object] | None = self._read(self.rundir.child)
        return record

    @property
    def is_over(self) -> bool:
        """Whether no process of the attempt lives any more."""
        return bool(self.state().get("ended")) or "over_at" in self.agent()

    def _member(self, process: Mapping[str, Any], logs: Mapping[str, int]) -> MemberFact:
        rank = process["rank"]
        started = self._read(self.rundir.supervisor_started(rank), MAX_RANK_RECORD_BYTES)
        started = started or self._read(self.rundir.started(rank), MAX_RANK_RECORD_BYTES)
        started = started if isinstance(started, dict) else {}
        ended = self._end_record(rank)
        is_over = self.is_over
        if ended is None and is_over and started:
            # Its wrapper and the child were killed, so that neither could record the end.
            ended = {"at": self.agent().get("over_at"), "signal": 9, "by_us": True}
        if ended is None:
            return MemberFact(
                rank=rank,
                state=RankState.RUNNING if started else RankState.WAITING,
                pid=_integer(started.get("pid")),
                started_at=_number(started.get("at")),
            )
        return MemberFact(
            rank=rank,
            state=RankState.ENDED,
            pid=_integer(started.get("pid")),
            started_at=_number(started.get("at")),
            ended_at=_number(ended.get("at")),
            exit_code=_integer(ended.get("exit_code")),
            signal=_integer(ended.get("signal")),
            log_bytes=logs.get(process["log_name"], 0) if is_over else None,
            ended_by_us=bool(ended.get("by_us")),
            out_of_memory=bool(ended.get("out_of_memory")),
        )

    def _end_record(self, rank: int) -> JsonObject | None:
        """Returns the child's record rather than the wrapper's. Children of earlier versions overwrote the
        wrapper's."""
        for path in (self.rundir.supervisor_ended(rank), self.rundir.ended(rank)):
            record = self._read(path, MAX_RANK_RECORD_BYTES)
            if isinstance(record, dict):
                return record
        return None

    def _daemon_calls(self) -> Iterator[DaemonCall]:
        """Yields mpirun's calls for daemons until a rank lives here: mpirun starts none before all daemons
        answer."""
        command = self.order()["command"]
        if not command["launcher"] or not self.has_ready_ports:
            return
        if any(os.path.exists(self.rundir.started(process["rank"])) for process in command["processes"]):
            return
        for name in self._daemon_call_files():
            call = self._read(f"{self.rundir.ranks}/{name}", MAX_RANK_RECORD_BYTES)
            if isinstance(call, dict) and _are_texts([call.get("host")]) and _are_texts(call.get("argv")):
                yield DaemonCall(call["host"], tuple(call["argv"]))

    def _daemon_call_files(self) -> list[str]:
        """Returns the names of the calls, at most as many as an honest run makes: with RUN_AS the run owns
        the folder."""
        with os.scandir(self.rundir.ranks) as entries:
            names = [entry.name for entry in islice(entries, MAX_RANK_RECORDS)]
        return sorted(name for name in names if name.startswith(DAEMON_CALL) and name.endswith(".json"))[
            :MAX_DAEMONS
        ]

    def _read(self, path: str, max_bytes: int = records.MAX_BYTES) -> Any:
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            return None
        # The inode is part of it because records are replaced by a rename, which may keep size and time.
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        cached = self._cache.get(path)
        if cached is None or cached[0] != version:
            try:
                cached = version, records.read(path, max_bytes)
            except records.UnreadableRecord:
                # The run's own account writes some records; an invalid one counts as missing.
                cached = version, None
            self._cache[path] = cached
        return cached[1]


def _are_texts(value: object) -> bool:
    """Returns whether a report can carry the values: half a surrogate pair in a text would make the report
    unencodable."""
    return isinstance(value, list) and all(isinstance(item, str) and _is_text(item) for item in value)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _integer(value: object) -> int | None:
    """Returns an integer that a report can carry, else None: with RUN_AS and MPI the run writes rank
    records."""
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_INTEGER else None
    )


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < MAX_INTEGER else None
