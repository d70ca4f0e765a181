"""What goes wrong where there are two servers, beside what goes wrong with one."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from functools import wraps

from tests.chaos.servers import ChaosServers
from tests.chaos.troubles import TROUBLES, Trouble
from tests.chaos.world import ChaosHosts
from tests.servers.cluster import FurtherServer
from workspaces.servers.server_registry import DEAD_AFTER_S


def of_servers(trouble: Callable[[ChaosServers, random.Random], str]) -> Trouble:
    @wraps(trouble)
    def checked(world: ChaosHosts, chance: random.Random) -> str:
        assert isinstance(world, ChaosServers)
        return trouble(world, chance)

    return checked


def one_of(world: ChaosServers, chance: random.Random) -> FurtherServer:
    return chance.choice(world.servers.servers)


@of_servers
def kill_a_server(world: ChaosServers, chance: random.Random) -> str:
    server, seconds = one_of(world, chance), chance.uniform(0, 10)
    server.kill_all()
    time.sleep(seconds)
    server.start()
    return f"kill -9 of everything of {server.name}, for {seconds:.1f} s"


@of_servers
def stop_a_server(world: ChaosServers, chance: random.Random) -> str:
    """As a virtual machine that is paused: for a moment, or until the others take it for dead."""
    server, seconds = one_of(world, chance), chance.uniform(1, 2 * DEAD_AFTER_S)
    server.signal_all(signal.SIGSTOP)
    time.sleep(seconds)
    server.signal_all(signal.SIGCONT)
    return f"SIGSTOP of everything of {server.name} for {seconds:.1f} s"


@of_servers
def set_the_clock_of_a_server(world: ChaosServers, chance: random.Random) -> str:
    server, behind_s, seconds = one_of(world, chance), chance.choice((60, -60)), chance.uniform(4, 12)
    world.set_server_clock(server, behind_s=behind_s)
    time.sleep(seconds)
    world.set_server_clock(server, behind_s=0)
    return f"the clock of {server.name} behind by {behind_s} s for {seconds:.1f} s"


@of_servers
def fill_the_disk_of_a_server(world: ChaosServers, chance: random.Random) -> str:
    server, seconds = one_of(world, chance), chance.uniform(2, 10)
    world.fill_own_disk(server)
    time.sleep(seconds)
    world.empty_own_disk(server)
    return f"the disk of {server.name} full for {seconds:.1f} s"


@of_servers
def cut_the_servers_apart(world: ChaosServers, chance: random.Random) -> str:
    """Both live and reach everything else, but not each other."""
    seconds = chance.uniform(3, 12)
    world.cut_link()
    time.sleep(seconds)
    world.heal_link()
    return f"the servers do not reach each other for {seconds:.1f} s"


@of_servers
def kill_the_proxy(world: ChaosServers, chance: random.Random) -> str:
    seconds = chance.uniform(0, 5)
    world.servers.proxy.kill()
    time.sleep(seconds)
    world.servers.proxy.start()
    return f"kill -9 of the proxy, for {seconds:.1f} s"


@of_servers
def kill_the_valkey(world: ChaosServers, chance: random.Random) -> str:
    seconds = chance.uniform(0, 8)
    world.servers.valkey.kill()
    time.sleep(seconds)
    world.servers.valkey.start()
    return f"kill -9 of Valkey with all that is in it, for {seconds:.1f} s"


@of_servers
def stop_the_valkey(world: ChaosServers, chance: random.Random) -> str:
    seconds = chance.uniform(2, 12)
    world.servers.valkey.signal(signal.SIGSTOP)
    time.sleep(seconds)
    world.servers.valkey.signal(signal.SIGCONT)
    return f"SIGSTOP of Valkey for {seconds:.1f} s"


@of_servers
def flush_the_valkey(world: ChaosServers, chance: random.Random) -> str:
    world.servers.valkey.flush()
    return "Valkey flushed"


@of_servers
def take_the_store_away(world: ChaosServers, chance: random.Random) -> str:
    seconds = chance.uniform(2, 25)
    world.store.is_away = True
    time.sleep(seconds)
    world.store.is_away = False
    return f"the object store answers 503 for {seconds:.1f} s"


@of_servers
def slow_the_store(world: ChaosServers, chance: random.Random) -> str:
    seconds = chance.uniform(4, 12)
    world.store.rate = 20_000
    time.sleep(seconds)
    world.store.rate = None
    return f"the object store as slow as 20 kB/s for {seconds:.1f} s"


# What only several servers can survive comes more often than anything else.
TROUBLES_OF_SERVERS: tuple[Trouble, ...] = (
    *TROUBLES,
    *3 * (kill_a_server,),
    stop_a_server,
    set_the_clock_of_a_server,
    fill_the_disk_of_a_server,
    cut_the_servers_apart,
    kill_the_proxy,
    kill_the_valkey,
    stop_the_valkey,
    flush_the_valkey,
    take_the_store_away,
    slow_the_store,
)
