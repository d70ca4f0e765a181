"""Kombu's transport for Redis and Valkey over TLS, which trusts one certificate authority and no other."""

from __future__ import annotations

import socket
import ssl

import redis
from kombu.transport.redis import Channel, Transport


class PinnedConnection(redis.SSLConnection):
    """A TLS connection that trusts only the given certificate authority, while redis-py would trust those of
    the machine as well."""

    def _wrap_socket_with_ssl(self, sock: socket.socket) -> ssl.SSLSocket:
        context = ssl.create_default_context(cadata=self.ca_data)
        return context.wrap_socket(sock, server_hostname=self.host)


class PinnedChannel(Channel):
    connection_class_ssl = PinnedConnection


class PinnedTransport(Transport):
    Channel = PinnedChannel
