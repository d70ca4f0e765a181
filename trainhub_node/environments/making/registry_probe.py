"""Finds out whether registries answer at all. podman waits for hours for one that takes connections and is
silent, and nothing of its output tells that from a large image."""

from __future__ import annotations

import socket
import ssl

SILENCE_S = 30.0
TLS_PORT = 443


def is_silent_registry(address: str) -> bool:
    """Returns whether the registry, HOST or HOST:PORT, takes a connection but sends nothing. False for one
    that cannot be reached: podman says why, or has a mirror of it."""
    host, colon, port = address.rpartition(":")
    if not (colon and port.isdecimal()):
        host, port = address, str(TLS_PORT)
    target = host.strip("[]"), int(port)
    context = ssl.create_default_context()
    # Only whether it answers counts; podman checks who it is.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = f"GET /v2/ HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode()
    try:
        with socket.create_connection(target, SILENCE_S) as connection:
            try:
                with context.wrap_socket(connection, server_hostname=target[0]) as secure:
                    secure.sendall(request)
                    secure.recv(1)
            except TimeoutError:
                return True
    except OSError:
        # It is not there, or speaks no TLS: then it has answered.
        return False
    return False
