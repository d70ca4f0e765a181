"""Watchers at other web servers, for data that goes straight from the reports of nodes to sockets, without
the channel layer (`live.fanout.tell_here`).

A higher floor brings what this server's sockets watch to the others (`shared_topics`), and tells what theirs
do (`set_watched_by`)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from live import fanout

# Only topics of nodes are asked about by the server that takes a node's reports.
PREFIXES = ("node.", "telemetry.")
_topics: dict[str, frozenset[str]] = {}
_relays: list[Callable[[str, str, str], None]] = []


def shared_topics() -> list[str]:
    """Returns what sockets of this process watch of nodes."""
    return [topic for topic in fanout.watched_topics() if topic.startswith(PREFIXES)]


def set_watched_by(server: str, topics: Collection[str]) -> None:
    """Takes what the sockets of another server watch; nothing once it is gone."""
    if topics:
        _topics[server] = frozenset(topics)
    else:
        _topics.pop(server, None)


def relay_with(relay: Callable[[str, str, str], None] | None) -> None:
    """Sets the function that brings a message (server, topic, text) to another server; None for none. It may
    be called from any thread."""
    _relays[:] = [] if relay is None else [relay]


def is_watched_anywhere(topic: str) -> bool:
    """Returns whether a socket of any web server watches the topic."""
    return fanout.is_watched(topic) or any(topic in topics for topics in list(_topics.values()))


def tell_everywhere(topic: str, text: str) -> None:
    """Offers an encoded message to the watchers of all web servers."""
    fanout.tell_here(topic, text)
    for server, topics in list(_topics.items()):
        if topic in topics:
            for relay in _relays:
                relay(server, topic, text)
