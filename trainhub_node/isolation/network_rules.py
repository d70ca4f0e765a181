"""What runs and builds of images may not connect to: ports that the agent gave to (other) runs, and addresses
of a cloud at which a machine learns its own credentials. Kept by the kernel's packet filter, in one table of
the agent.

The table is written as a whole each time, which the kernel does at once. So it is there again, too, after
another program has removed all tables, as a firewall does when it loads its own."""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

log = logging.getLogger(__name__)
TIMEOUT_S = 20
NFT = "nft"
PATH = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin"
# Of AWS, Azure, Google, Oracle, OpenStack and most others; of AWS for containers; of Alibaba, Tencent, Oracle
# and Scaleway.
METADATA_V4 = (
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "100.100.100.200",
    "169.254.0.23",
    "192.0.0.192",
    "169.254.42.42",
)
# Of AWS, of AWS for containers, of Google, OpenStack and Scaleway.
METADATA_V6 = ("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fe80::a9fe:a9fe", "fd00:42::42")
# Azure's second address, which is a name server, too: its ports with settings and certificates of the
# machine.
AZURE_WIRE, AZURE_PORTS = "168.63.129.16", (80, 32526)
# Google's address is the machine's name server as well.
NAME_SERVICE = 53
# By which containers of podman's default network reach others: those in which images are built. Ranks in
# containers use the network of the machine.
BRIDGES = ("cni-podman0", "podman0")


class RulesError(Exception):
    """The packet filter cannot keep the rules; the message says why, as a part of a sentence."""


@dataclass(frozen=True)
class NetworkTable:
    """A table of the packet filter. `accounts`: the numbers of the accounts of runs. `refuses_metadata`:
    whether addresses of the cloud are refused to them."""

    name: str
    accounts: range
    refuses_metadata: bool = True

    def content(self, ports: Mapping[int, Collection[int]], closed: Collection[int] = ()) -> str:
        """Returns the table in the language of nft. `ports`: account -> ports of this machine that only it
        may connect to; `closed`: ports of this machine that no run may connect to."""
        pairs = sorted((port, account) for account, own in ports.items() for port in own)
        guarded = sorted({port for port, _ in pairs} | set(closed))
        owners = _elements(f"{port} . {uid}" for port, uid in pairs)
        accounts = f"{self.accounts.start}-{self.accounts[-1]}"
        return "\n".join(
            [
                f"table inet {self.name} {{",
                f"set guarded {{ type inet_service; {_elements(guarded)} }}",
                f"set owners {{ type inet_service . uid; {owners} }}",
                "chain output {",
                "type filter hook output priority filter; policy accept;",
                f"meta skuid {accounts} jump runs",
                "}",
                *_bridge_chain("input"),
                *_bridge_chain("forward"),
                "chain bridges {",
                *(_metadata_rules() if self.refuses_metadata else ()),
                "fib daddr type local meta l4proto { tcp, udp } th dport @guarded reject",
                "}",
                "chain runs {",
                *(_metadata_rules() if self.refuses_metadata else ()),
                "fib daddr type local meta l4proto { tcp, udp } th dport @guarded "
                "th dport . meta skuid != @owners reject",
                "}",
                "}",
                "",
            ]
        )


class NetworkRules:
    """Keeps a table up to date; methods may be called from any thread. A failure is logged, and repaired by
    the next change or `refresh`."""

    def __init__(self, table: NetworkTable) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._ports: dict[int, frozenset[int]] = {}
        self._closed: frozenset[int] = frozenset()
        self._is_written = False
        self._is_removed = False

    def set_ports(self, ports: Mapping[int, Collection[int]]) -> None:
        """Has the ports of each account, and no others, refused to all other accounts of runs."""
        with self._lock:
            current = {account: frozenset(own) for account, own in ports.items() if own}
            if current != self._ports or not self._is_written:
                self._ports = current
                self._write()

    def close_ports(self, closed: Collection[int]) -> None:
        """Has these ports of the machine refused to all runs."""
        with self._lock:
            if frozenset(closed) != self._closed:
                self._closed = frozenset(closed)
                self._write()

    def refresh(self) -> None:
        """Writes the table again: another program may have removed it."""
        with self._lock:
            self._write()

    def remove(self) -> None:
        """Removes the table for good: no later change writes it again."""
        with self._lock:
            self._is_removed = True
            try:
                remove_table(self._table.name)
            except RulesError as error:
                log.error(
                    "The table %s of the packet filter could not be removed: %s", self._table.name, error
                )

    def _write(self) -> None:
        if self._is_removed:
            return
        try:
            write_table(self._table, self._ports, self._closed)
            self._is_written = True
        except RulesError as error:
            self._is_written = False
            log.error("Runs may reach each other's ports and the cloud's metadata now: %s", error)


def find_table(agent: str, accounts: range, *, refuses_metadata: bool) -> NetworkTable:
    """Returns the table of an agent, which is not written yet. `agent`: a text that no other agent of this
    machine has. Raises RulesError if this machine cannot keep one."""
    table = NetworkTable(table_name(agent), accounts, refuses_metadata)
    # Made and deleted in one step: the kernel checks all of it, and no packet ever meets it.
    trial = NetworkTable(f"{table.name}_trial", accounts, refuses_metadata)
    _nft(f"{trial.content({accounts.start: (1,)})}delete table inet {trial.name}\n")
    return table


def table_name(agent: str) -> str:
    """Returns the name of an agent's table; `agent`: see `find_table`."""
    return f"trainhub_{hashlib.sha256(agent.encode()).hexdigest()[:12]}"


def write_table(
    table: NetworkTable, ports: Mapping[int, Collection[int]], closed: Collection[int] = ()
) -> None:
    """Replaces the table by one with this content, in one step. Raises RulesError."""
    _nft(f"table inet {table.name}\ndelete table inet {table.name}\n{table.content(ports, closed)}")


def remove_table(name: str) -> None:
    """Removes a table, if there is one. Raises RulesError."""
    _nft(f"table inet {name}\ndelete table inet {name}\n")


def _bridge_chain(hook: str) -> Iterable[str]:
    yield f"chain {hook} {{"
    yield f"type filter hook {hook} priority filter; policy accept;"
    yield f"iifname {{ {', '.join(BRIDGES)} }} jump bridges"
    yield "}"


def _metadata_rules() -> Iterable[str]:
    no_names = f"meta l4proto {{ tcp, udp }} th dport != {NAME_SERVICE}"
    yield f"{no_names} ip daddr {{ {', '.join(METADATA_V4)} }} reject"
    yield f"{no_names} ip6 daddr {{ {', '.join(METADATA_V6)} }} reject"
    yield f"ip daddr {AZURE_WIRE} tcp dport {{ {', '.join(map(str, AZURE_PORTS))} }} reject"


def _elements(items: Iterable[object]) -> str:
    """Returns the content of a set; nft takes no empty list."""
    text = ", ".join(map(str, items))
    return f"elements = {{ {text} }}" if text else ""


def _nft(commands: str) -> None:
    program = shutil.which(NFT, path=PATH)
    if program is None:
        raise RulesError("the program nft is missing; install the package nftables and restart the agent")
    try:
        done = subprocess.run(
            [program, "-f", "-"],
            input=commands,
            capture_output=True,
            text=True,
            cwd="/",
            env={},
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RulesError(f"nft did not end within {TIMEOUT_S} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"nft ended with code {done.returncode}"]
        raise RulesError(f"nft refused: {lines[0].rpartition('Error: ')[2]}")
