"""A server that answers every call of MLflow's client at once and stores nothing: what the client alone
takes.

python -m bench.support.null_server PORT
"""

from __future__ import annotations

import asyncio
import json
import sys

EXPERIMENT = {
    "experiment": {
        "experiment_id": "1",
        "name": "bench",
        "artifact_location": "",
        "lifecycle_stage": "active",
    }
}
RUN = "a" * 32
INFO = {
    "run_id": RUN,
    "run_uuid": RUN,
    "experiment_id": "1",
    "status": "RUNNING",
    "start_time": 1,
    "lifecycle_stage": "active",
}
ANSWERS = {b"get-by-name": EXPERIMENT, b"runs/create": {"run": {"info": INFO, "data": {}}}}


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next(
                (int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0
            )
            await reader.readexactly(length)
            path = head.split(b" ", 2)[1]
            body = json.dumps(next((answer for name, answer in ANSWERS.items() if name in path), {})).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                + body
            )
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(port: int) -> None:
    server = await asyncio.start_server(talk, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
