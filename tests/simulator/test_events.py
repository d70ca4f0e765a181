"""XID errors and other events reach those that wait."""

from __future__ import annotations

import time
from pathlib import Path

from simulator import xid
from tests.simulator.worlds import Inhabitant, ask, eight_h100, one_gpu

LISTEN = """
nvml.nvmlInit()
watched = nvml.nvmlEventSetCreate()
for i in range(nvml.nvmlDeviceGetCount()):
    nvml.nvmlDeviceRegisterEvents(nvml.nvmlDeviceGetHandleByIndex(i), nvml.nvmlEventTypeXidCriticalError,
        watched)
def listen(milliseconds):
    try: data = nvml.nvmlEventSetWait_v2(watched, milliseconds)
    except nvml.NVMLError as error: return f"error {error.value}"
    return [nvml.nvmlDeviceGetUUID(data.device), data.eventType, data.eventData]
tell(ready=True)
"""


class TestXid:
    def test_it_reaches_who_listens_once(self, tmp_path: Path) -> None:
        scenario = eight_h100()
        path = scenario.write(tmp_path / "scenario")
        with Inhabitant(path, LISTEN + "tell(got=listen(20_000)); tell(got=listen(0))") as one:
            one.heard()
            scenario.gpus[5].events.append(xid(79))
            scenario.write(path)
            assert one.heard() == {"got": [scenario.gpus[5].uuid, 8, 79]}
            assert one.heard() == {"got": "error 10"}

    def test_several_come_one_after_the_other(self, tmp_path: Path) -> None:
        scenario = one_gpu()
        path = scenario.write(tmp_path / "scenario")
        with Inhabitant(path, LISTEN + "tell(codes=[listen(20_000)[2] for _ in range(3)])") as one:
            one.heard()
            at = time.time()
            scenario.gpus[0].events += [xid(31, at), xid(43, at), xid(45, at)]
            scenario.write(path)
            assert one.heard() == {"codes": [31, 43, 45]}

    def test_one_of_before_is_not_told(self, tmp_path: Path) -> None:
        told = Inhabitant(
            one_gpu(events=[xid(48)]).write(tmp_path / "scenario"), LISTEN + "tell(got=listen(0))"
        )
        with told as one:
            one.heard()
            assert one.heard() == {"got": "error 10"}

    def test_one_that_lies_ahead_comes_in_its_time(self, tmp_path: Path) -> None:
        at = time.time() + 2
        code = LISTEN.replace("tell(ready=True)", "got = listen(20_000); tell(got=got, at=time.time())")
        told = ask(one_gpu(events=[xid(63, at)]).write(tmp_path / "scenario"), code)
        assert told["got"][2] == 63
        assert told["at"] >= at

    def test_a_lost_gpu_ends_the_wait(self, tmp_path: Path) -> None:
        scenario = eight_h100()
        path = scenario.write(tmp_path / "scenario")
        with Inhabitant(path, LISTEN + "tell(got=listen(20_000)); tell(got=listen(20_000))") as one:
            one.heard()
            scenario.gpus[1].removed = True
            scenario.gpus[0].events.append(xid(79))
            scenario.write(path)
            assert one.heard() == {"got": [scenario.gpus[0].uuid, 8, 79]}
            assert one.heard() == {"got": "error 15"}

    def test_others_read_while_one_waits(self, tmp_path: Path) -> None:
        code = LISTEN.replace(
            "tell(ready=True)",
            """
import threading, os
waiting = threading.Thread(target=listen, args=(60_000,), daemon=True); waiting.start()
handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(8)]
def read(): return [nvml.nvmlDeviceGetPowerUsage(h) for h in handles * 200]
readers = [threading.Thread(target=read) for _ in range(4)]
for reader in readers: reader.start()
for reader in readers: reader.join()
tell(waits=waiting.is_alive()); os._exit(0)
""",
        )
        assert ask(eight_h100().write(tmp_path / "scenario"), code) == {"waits": True}
