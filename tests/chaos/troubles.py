"""What goes wrong. Each trouble is over when its function returns; the installation mends itself from it."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from tests.chaos.world import SETTINGS, ChaosHosts
from tests.hosts import processes
from tests.hosts.wiring import ip
from tests.hub import Hub, eventually

Trouble = Callable[[ChaosHosts, random.Random], str]
LOST_S = float(SETTINGS["NODE_LOST_AFTER"])


def running_part(hub: Hub, name: str) -> int:
    """The process number of a part, which may be starting again."""
    return eventually(lambda: hub.pid(name), 60, f"{name} runs")


def kill_a_part(world: ChaosHosts, chance: random.Random) -> str:
    hub, name = chance.choice(world.hubs), chance.choice(world.parts)
    before = running_part(hub, name)
    with suppress(ProcessLookupError):
        os.kill(before, signal.SIGKILL)
    eventually(lambda: hub.pid(name) not in (0, before), 60, f"{name} runs again")
    return f"kill -9 of {name} ({hub.own_folder.name})"


def stop_a_part(world: ChaosHosts, chance: random.Random) -> str:
    hub, name = chance.choice(world.hubs), chance.choice(world.parts)
    seconds, pid = chance.uniform(2, 12), running_part(hub, name)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
    return f"SIGSTOP of {name} ({hub.own_folder.name}) for {seconds:.1f} s"


def kill_the_database(world: ChaosHosts, chance: random.Random) -> str:
    seconds = chance.uniform(0, 8)
    world.database.kill()
    time.sleep(seconds)
    world.database.start()
    return f"kill -9 of PostgreSQL, for {seconds:.1f} s"


def stop_the_database(world: ChaosHosts, chance: random.Random) -> str:
    seconds = chance.uniform(2, 12)
    world.database.pause()
    time.sleep(seconds)
    world.database.resume()
    return f"SIGSTOP of PostgreSQL for {seconds:.1f} s"


def kill_an_agent(world: ChaosHosts, chance: random.Random) -> str:
    host, seconds = chance.choice(world.hosts), chance.uniform(0, 6)
    host.kill_agent()
    time.sleep(seconds)
    host.start_agent()
    return f"kill -9 of the agent of {host.name}, for {seconds:.1f} s"


def stop_an_agent(world: ChaosHosts, chance: random.Random) -> str:
    host, seconds = chance.choice(world.hosts), chance.uniform(2, LOST_S + 8)
    pid = host.agent_pid()
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    # nsenter, by which it was started, stops itself with it.
    os.kill(processes.parent(pid), signal.SIGCONT)
    os.kill(pid, signal.SIGCONT)
    return f"SIGSTOP of the agent of {host.name} for {seconds:.1f} s"


def cut_a_host(world: ChaosHosts, chance: random.Random) -> str:
    """For a moment, or for so long that the hub gives it up."""
    host, seconds = chance.choice(world.hosts), chance.choice((2.0, 6.0, LOST_S + 8))
    host.cut()
    time.sleep(seconds)
    ip("link", "set", host.link, "up")
    return f"the cable of {host.name} pulled for {seconds:.0f} s"


def crash_a_host(world: ChaosHosts, chance: random.Random) -> str:
    host, seconds = chance.choice(world.hosts), chance.choice((1.0, LOST_S + 5))
    host.crash()
    time.sleep(seconds)
    host.boot()
    host.start_agent()
    return f"{host.name} without power for {seconds:.0f} s"


def slow_a_host(world: ChaosHosts, chance: random.Random) -> str:
    host, seconds = chance.choice(world.hosts), chance.uniform(5, 12)
    host.slow(kilobits=128)
    time.sleep(seconds)
    host.quicken()
    return f"128 kbit/s to {host.name} for {seconds:.1f} s"


def fill_the_disk(world: ChaosHosts, chance: random.Random) -> str:
    seconds = chance.uniform(2, 10)
    world.fill_disk(free_bytes=chance.choice((0, 100_000)))
    time.sleep(seconds)
    world.empty_disk()
    return f"the hub's disk full for {seconds:.1f} s"


def set_a_clock(world: ChaosHosts, chance: random.Random) -> str:
    host, behind_s, seconds = chance.choice(world.hosts), chance.choice((3, 60, -40)), chance.uniform(4, 10)
    host.set_clock(behind_s=behind_s)
    time.sleep(seconds)
    host.set_clock(behind_s=0)
    return f"the clock of {host.name} behind by {behind_s} s for {seconds:.1f} s"


def restart_a_hub(world: ChaosHosts, chance: random.Random) -> str:
    hub = chance.choice(world.hubs)
    hub.stop()
    hub.start()
    return f"{hub.own_folder.name} restarted in order"


TROUBLES: tuple[Trouble, ...] = (
    kill_a_part,
    kill_a_part,
    stop_a_part,
    kill_the_database,
    stop_the_database,
    kill_an_agent,
    stop_an_agent,
    cut_a_host,
    crash_a_host,
    slow_a_host,
    fill_the_disk,
    set_a_clock,
    restart_a_hub,
)
