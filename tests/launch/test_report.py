from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.launch.builders import make_placement, make_plan, make_spec, mpi
from trainhub_launch.errors import WireError
from trainhub_launch.machine import GpuFact, Heartbeat, Interpreter
from trainhub_launch.order import EnvironmentSpec, NodeOrder
from trainhub_launch.report import Ack, AttemptFact, LogChunk, MemberFact, OutputFile, Report, StopOrder
from trainhub_launch.states import Phase, RankState
from trainhub_launch.telemetry import BUCKET_S, GpuEvent

BEAT = Heartbeat(
    agent_version="0.1",
    hostname="gpu-1",
    address="10.0.0.1",
    interface="eth0",
    cores=8,
    slots=32,
    memory_bytes=1 << 36,
    memory_used_bytes=1 << 34,
    cpu_pct=12.5,
    disk_free_bytes=1 << 40,
    mpi="4.1.4",
    gpus=(GpuFact(uuid="GPU-1a", index=0, name="H200", memory_bytes=1 << 37),),
    interpreters=(Interpreter(path="/usr/bin/python3", version="3.11.7"),),
)
FACT = AttemptFact(
    run="ab" * 16,
    attempt=1,
    phase=Phase.RUNNING,
    phase_at={"running": 12.5},
    members=(
        MemberFact(rank=0, state=RankState.ENDED, exit_code=3),
        MemberFact(rank=1, state=RankState.RUNNING, pid=77),
    ),
    logs={"70_driver_log_0.txt": 12},
    outputs=(OutputFile("model.pt", 9, "c" * 64),),
    warnings=("a file was left out",),
)
GPU = asdict(BEAT.gpus[0])
BUCKET = {
    "start": 0,
    "step_s": BUCKET_S,
    "subjects": ["GPU-1a"],
    "metrics": ["power_w"],
    "values": bytes(4),
    "peaks": bytes(4),
}
EVENT = asdict(GpuEvent(1, 0.0, "xid", "GPU-1a", 79))
chunks = st.builds(
    LogChunk,
    st.text(max_size=8),
    st.integers(1, 9),
    st.text(max_size=8),
    st.integers(0, 1 << 40),
    st.binary(),
)


def make_report(**changes: Any) -> Report:
    return Report(
        **{"agent": "a1", "sequence": 7, "sent_at": 1.5, "heartbeat": BEAT, "attempts": (FACT,), **changes}
    )


def as_lists(value: Any) -> Any:
    """What msgpack makes of tuples."""
    if isinstance(value, dict):
        return {key: as_lists(item) for key, item in value.items()}
    return [as_lists(item) for item in value] if isinstance(value, list | tuple) else value


class TestReport:
    @given(st.lists(chunks, max_size=3).map(tuple))
    def test_comes_over_the_wire_unchanged(self, logs: tuple[LogChunk, ...]) -> None:
        report = make_report(logs=logs, living=(("r", 1),))
        assert Report.from_wire(as_lists(report.to_wire())) == report

    def test_without_a_heartbeat_too(self) -> None:
        report = make_report(heartbeat=None, attempts=())
        assert Report.from_wire(as_lists(report.to_wire())) == report

    def test_of_an_older_agent_lacks_later_fields(self) -> None:
        wire = as_lists(make_report().to_wire())
        for name in ("capabilities", "separation", "containers", "data_cache_bytes", "data_lists", "reads"):
            del wire["heartbeat"][name]
        del wire["attempts"][0]["changed_inputs"]
        assert Report.from_wire(wire) == make_report()

    @pytest.mark.parametrize(
        ("part", "message"), [("heartbeat", "Heartbeat has no field "), ("attempts", "AttemptFact has no ")]
    )
    def test_of_a_newer_agent_says_what_to_upgrade(self, part: str, message: str) -> None:
        wire = as_lists(make_report().to_wire())
        (wire[part] if part == "heartbeat" else wire[part][0])["of_a_later_version" * 100] = 1
        with pytest.raises(WireError, match=rf"^{message}.*newer; upgrade the hub first") as raised:
            Report.from_wire(wire)
        assert len(str(raised.value)) < 400

    @pytest.mark.parametrize(
        "wrong",
        [
            None,
            [],
            "report",
            {},
            {"version": 1},
            {**make_report().to_wire(), "version": 1},
            {**make_report().to_wire(), "heartbeat": {"cpu": 1}},
            {**make_report().to_wire(), "living": [1]},
            {**make_report().to_wire(), "attempts": [{"phase": "dreaming"}]},
            {**make_report().to_wire(), "logs": [{"run": "r"}]},
            {
                **make_report().to_wire(),
                "logs": [{"run": "r", "attempt": 1, "name": "n", "offset": "0", "data": b""}],
            },
            {
                **make_report().to_wire(),
                "logs": [{"run": "r", "attempt": 1, "name": "n", "offset": 0, "data": "text"}],
            },
            {
                **make_report().to_wire(),
                "attempts": [{**asdict(FACT), "members": [{"rank": "0", "state": "ended"}]}],
            },
            {
                **make_report().to_wire(),
                "attempts": [{**asdict(FACT), "outputs": [{"path": 1, "size": 1, "sha256": ""}]}],
            },
        ],
    )
    def test_anything_else_is_refused_as_no_report(self, wrong: Any) -> None:
        with pytest.raises(WireError):
            Report.from_wire(as_lists(wrong))

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"interpreters": "python3"}, "interpreters must be a list of at most 1,024"),
            ({"network_ports": [{}] * 1025}, "network_ports must be a list of at most 1,024"),
            ({"numbers": [1.0]}, "numbers must be a mapping"),
            ({"numbers": {7: 1.0}}, "the names of numbers must be texts"),
            ({"numbers": {"load_1": "high"}}, "numbers must hold numbers, not str"),
            ({"numbers": {"load_1": True}}, "numbers must hold numbers, not bool"),
            ({"gpus": [{**GPU, "state": "melted"}]}, "the state of a GPU must be one of ok, lost"),
            ({"gpus": [{**GPU, "counters": {"xid": None}}]}, "counters must hold numbers, not NoneType"),
        ],
    )
    def test_a_machine_as_there_is_none_is_refused(self, changed: dict[str, Any], message: str) -> None:
        wire = as_lists(make_report().to_wire())
        with pytest.raises(WireError, match=f"^{message}$"):
            Report.from_wire({**wire, "heartbeat": {**wire["heartbeat"], **changed}})

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"buckets": [{**BUCKET, "subjects": "GPU-1a"}]}, "subjects and metrics must be lists of texts"),
            ({"buckets": [{**BUCKET, "metrics": [7]}]}, "subjects and metrics must be lists of texts"),
            ({"buckets": [{**BUCKET, "values": "text"}]}, "a block's numbers must be bytes"),
            ({"events": [{**EVENT, "kind": "melted"}]}, "the kind of an event must be one of xid, lost,"),
        ],
    )
    def test_telemetry_of_another_shape_is_refused(self, changed: dict[str, Any], message: str) -> None:
        wire = as_lists(make_report().to_wire())
        assert Report.from_wire({**wire, "buckets": [BUCKET], "events": [EVENT]}).events
        with pytest.raises(WireError, match=message):
            Report.from_wire({**wire, **changed})


class TestAck:
    def test_comes_over_the_wire_unchanged(self) -> None:
        ack = Ack(
            offsets=(("r", 1, "70_driver_log.txt", 12),),
            start=(("r", 2),),
            stop=(StopOrder("r", 1, 10, "canceled"),),
            settled=(("q", 1),),
            interval_s=1.0,
        )
        assert Ack.from_wire(as_lists(ack.to_wire())) == ack

    @pytest.mark.parametrize("wrong", [None, [], {}, {"offsets": [[1]]}])
    def test_anything_else_is_refused(self, wrong: Any) -> None:
        with pytest.raises(WireError):
            Ack.from_wire(wrong)


class TestNodeOrder:
    def test_comes_back_from_its_json_unchanged(self) -> None:
        for command in make_plan(make_spec(mpi(2, 2)), make_placement(2, 2)).commands:
            order = NodeOrder(
                run="ab" * 16,
                attempt=2,
                command=command,
                environment=EnvironmentSpec("e", "1", "venv", requirements=("torch",)),
                snapshot="c" * 64,
                snapshot_size=12,
                values={"launch:token": "t"},
                masked=("t",),
                timeout_s=60,
            )
            assert NodeOrder.from_json(order.to_json()) == order

    def test_environments_of_equal_content_share_a_cache_whatever_they_are_called(self) -> None:
        one = EnvironmentSpec("a", "1", "venv", requirements=("torch", "numpy"))
        assert one.digest == EnvironmentSpec("b", "2", "venv", requirements=("numpy", "torch")).digest
        assert one.digest != EnvironmentSpec("a", "1", "venv", requirements=("torch",)).digest
