"""What nodes say to each other over TLS. All of it has fixed sizes: there is little that a stranger could get
wrong on purpose.

The one who asks sends its ticket (see peer_tickets), and then any number of requests, each the number of a
block. The answer to a request is a status and the number of bytes that follow."""

from __future__ import annotations

import ssl
import struct
import time

REQUEST = struct.Struct(">I")
ANSWER = struct.Struct(">BI")
# Here it comes; it is not here; the ticket is wrong or has expired.
OK, ABSENT, REFUSED = 0, 1, 2


def receive(connection: ssl.SSLSocket, count: int, deadline: float) -> bytes:
    """Returns exactly `count` bytes. Raises EOFError if the other side closes, TimeoutError at `deadline`
    (monotonic seconds), however slowly the bytes come."""
    data = b""
    while len(data) < count:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        chunk = connection.recv(count - len(data))
        if not chunk:
            raise EOFError
        data += chunk
        if time.monotonic() > deadline and len(data) < count:
            raise TimeoutError
    return data
