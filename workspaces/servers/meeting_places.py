"""Where servers of one hub meet: each leaves a mark there, and finds those of the others unless it was given
another Valkey, broker or folder than they."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import redis
from django.conf import settings

# A mark that is not renewed goes after so long; in the folder, its file.
MARK_S, FILE_S = 60, 3600
TIMEOUT_S = 2.0
PREFIX = "trainhub-server."
AMQP = ("amqp", "amqps")


class PlaceUnreachable(Exception):
    """Whether the others were there cannot be said now."""


class MeetingPlace(Protocol):
    """A place that one setting names. Its methods raise PlaceUnreachable."""

    setting: str

    def visit(self, own: str, others: Collection[str]) -> set[str]:
        """Renews the mark of this server (none, if `own` is ""). Returns which of the others have none."""


class RedisPlace:
    """A server of Redis or Valkey, with the database number of the address."""

    def __init__(self, setting: str, url: str) -> None:
        self.setting, self._url = setting, redis_py_url(url)

    def visit(self, own: str, others: Collection[str]) -> set[str]:
        try:
            with closing(self._client()) as server, server.pipeline(transaction=False) as batch:
                if own:
                    batch.set(PREFIX + own, "", ex=MARK_S)
                for other in others:
                    batch.exists(PREFIX + other)
                answers = batch.execute()[1 if own else 0 :]
        except (redis.RedisError, OSError) as error:
            raise PlaceUnreachable(str(error)) from error
        return {other for other, is_there in zip(others, answers, strict=True) if not is_there}

    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(self._url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)


class AmqpPlace:
    """A virtual host of RabbitMQ. A mark is a queue without messages, which the broker removes in time."""

    def __init__(self, setting: str, url: str) -> None:
        self.setting, self._url = setting, url

    def visit(self, own: str, others: Collection[str]) -> set[str]:
        with self._connection() as connection:
            if own:
                arguments = {"x-expires": MARK_S * 1000}
                with connection.channel() as channel:
                    channel.queue_declare(PREFIX + own, durable=True, auto_delete=False, arguments=arguments)
            return {other for other in others if not self._has_queue(connection, PREFIX + other)}

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        # Imported by name: a hub with Valkey needs neither.
        amqp, kombu = import_module("amqp"), import_module("kombu")
        limits = {"read_timeout": TIMEOUT_S, "write_timeout": TIMEOUT_S}
        try:
            with kombu.Connection(
                self._url, connect_timeout=TIMEOUT_S, transport_options=limits
            ) as connection:
                yield connection
        except (amqp.AMQPError, kombu.exceptions.KombuError, OSError) as error:
            raise PlaceUnreachable(str(error)) from error

    def _has_queue(self, connection: Any, name: str) -> bool:
        # A refusal closes the channel.
        channel = connection.channel()
        try:
            channel.queue_declare(name, passive=True)
        except import_module("amqp").NotFound:
            return False
        channel.close()
        return True


class FolderPlace:
    """The data folder: one that was copied to another machine instead of being mounted there looks right, and
    is another one."""

    setting = "DATA_DIR"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def visit(self, own: str, others: Collection[str]) -> set[str]:
        try:
            if own:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                (self._folder / own).touch(0o600)
            marks = {path.name: path for path in self._folder.iterdir()} if self._folder.is_dir() else {}
            for path in marks.values():
                _remove_if_old(path)
        except OSError as error:
            raise PlaceUnreachable(str(error)) from error
        return set(others) - marks.keys()


def meeting_places() -> list[MeetingPlace]:
    """Returns the places of this hub: its Valkey, its broker if that is another one, and its folder."""
    places: list[MeetingPlace] = [RedisPlace("REDIS_URL", settings.REDIS_URL)]
    broker = settings.BROKER_URL
    if urlsplit(broker).scheme in AMQP:
        places.append(AmqpPlace("BROKER_URL", broker))
    elif redis_py_url(broker) != redis_py_url(settings.REDIS_URL):
        places.append(RedisPlace("BROKER_URL", broker))
    return [*places, FolderPlace(Path(settings.DATA_DIR) / "run" / "servers")]


def redis_py_url(url: str) -> str:
    """Returns the URL for redis-py of the server at Celery's `url`."""
    if not url.startswith("redis+socket://"):
        return url
    # Kombu names the database of a socket `virtual_host`, and redis-py names it `db`.
    parts = urlsplit(url)
    database = parse_qs(parts.query).get("virtual_host")
    # urlunsplit would drop the slashes before an empty host, which redis-py insists on.
    return f"unix://{parts.netloc}{parts.path}" + (f"?db={database[0]}" if database else "")


def _remove_if_old(path: Path) -> None:
    try:
        if time.time() - path.stat().st_mtime > FILE_S:
            path.unlink()
    except FileNotFoundError:
        return  # another server was quicker
