"""A child process that parses one large JSON file from standard input, with limits on memory and time.

Its first line of output is `ok`, or `no` for a file that cannot be shown; the result or the reason follows.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
from dataclasses import asdict

from tracking.artifacts.previews import documents

DOCUMENT, FIGURE = "document", "figure"


def main(mode: str, memory_bytes: int, cpu_s: int) -> None:
    # A core dump would store the content of the file on the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    gc.disable()  # parsed JSON has no cycles, and the collector takes longer than parsing
    data = sys.stdin.buffer.read()
    try:
        status, output = b"ok\n", _convert(mode, data)
    except documents.NotPreviewable as error:
        status, output = b"no\n", str(error).encode(errors="replace")
    except MemoryError:
        status, output = b"no\n", b"it needs more memory than a preview may take"
    sys.stdout.buffer.write(status + output)


def _convert(mode: str, data: bytes) -> bytes:
    return (
        documents.figure_json(data)
        if mode == FIGURE
        else json.dumps(asdict(documents.preview_json(data))).encode()
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
