"""The rows of web servers and workers, by the database's clock."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from workspaces.servers import shared_settings
from workspaces.servers.models import ServerProcess

# A server that has not renewed its row for so long is dead for the others.
DEAD_AFTER_S = 6.0
FORGOTTEN_AFTER = timedelta(hours=1)
WEB, WORKER = "web", "worker"


@dataclass(frozen=True)
class OtherServer:
    """A living web server, as others see it."""

    id: str
    name: str
    address: str


@dataclass(frozen=True)
class OwnProcess:
    """This process, as it registers itself. `is_alone`: it was not started as one of several."""

    role: str
    address: str = ""
    is_alone: bool = True
    id: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def name(self) -> str:
        return own_name()


def own_name() -> str:
    """Returns the name of this server: SERVER_NAME, or the name of this machine."""
    return settings.SERVER_NAME or socket.gethostname()


def own_machine() -> str:
    """Returns what no other running kernel has: two machines of the same name are told apart by it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


def is_own(row: ServerProcess) -> bool:
    """Returns whether this row is of a process of this very server."""
    return row.machine == own_machine() and row.name == own_name()


def is_shareable() -> bool:
    """Returns whether processes on several machines can use this database."""
    return connection.vendor == "postgresql"


def register_process(own: OwnProcess) -> None:
    """Adds the row of this process, in place of those of its predecessors, which have ended: one server of a
    name runs on a machine at a time (the lock of `manage.py up`)."""
    with transaction.atomic():
        ServerProcess.objects.filter(name=own.name, machine=own_machine(), role=own.role).delete()
        ServerProcess.objects.filter(renewed_at__lt=Now() - FORGOTTEN_AFTER).delete()
        ServerProcess.objects.create(
            id=own.id,
            name=own.name,
            machine=own_machine(),
            role=own.role,
            address=own.address,
            is_alone=own.is_alone,
            version=settings.TRAINHUB_VERSION,
            clock_offset_s=clock_offset_s(),
            started_at=Now(),
            renewed_at=Now(),
            settings=shared_settings.own_codes(),
        )


def renew_process(own: OwnProcess, offset_s: float) -> None:
    """Says that this process lives. Adds its row again should somebody have removed it."""
    if not ServerProcess.objects.filter(pk=own.id).update(renewed_at=Now(), clock_offset_s=offset_s):
        register_process(own)


def remove_process(own: OwnProcess) -> None:
    ServerProcess.objects.filter(pk=own.id).delete()


def remove_all_processes() -> None:
    """Removes all rows; for a database that no server uses yet."""
    ServerProcess.objects.all().delete()


def living_processes() -> QuerySet[ServerProcess]:
    """Returns the processes that have renewed their rows recently, without what `compared_processes` adds: a
    start asks before it has migrated the database."""
    return compared_processes().defer("settings", "marks", "strangers")


def compared_processes() -> QuerySet[ServerProcess]:
    """Returns the same with what each has that must be alike everywhere."""
    return ServerProcess.objects.filter(renewed_at__gt=Now() - timedelta(seconds=DEAD_AFTER_S))


def web_peers(*, max_offset_s: float) -> Sequence[OtherServer]:
    """Returns the living web servers whose clock differs from the database's by at most `max_offset_s`; all
    living ones if that holds for none."""
    rows = list(living_processes().filter(role=WEB).values_list("id", "name", "address", "clock_offset_s"))
    punctual = [row for row in rows if abs(row[3]) <= max_offset_s]
    return [OtherServer(*row[:3]) for row in punctual or rows]


def clock_offset_s() -> float:
    """Returns by how many seconds this machine's clock is ahead of the database's."""
    if not is_shareable():
        return 0.0
    before = time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        theirs = float(cursor.fetchone()[0])
    return (before + time.time()) / 2 - theirs


def database_now() -> datetime:
    """Returns the time by the database's clock."""
    return datetime.now(UTC) - timedelta(seconds=clock_offset_s())


def silence_s() -> dict[str, float]:
    """Returns for each known process the seconds since it renewed its row."""
    rows = ServerProcess.objects.annotate(silent=Now() - F("renewed_at")).values_list("id", "silent")
    return {server: silent.total_seconds() for server, silent in rows}
