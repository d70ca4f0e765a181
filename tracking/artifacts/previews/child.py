"""The process that parses one large JSON file, within limits on memory and time. The file is its standard
input.

It writes `ok`, or `no` for a file that is not what was asked for, on a line of its own, and then the result
or the reason."""

from __future__ import annotations

import gc
import json
import resource
import sys
from dataclasses import asdict

from tracking.artifacts.previews import documents

DOCUMENT, FIGURE = "document", "figure"


def main(what: str, memory_bytes: int, cpu_s: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    gc.disable()  # parsed JSON has no cycles, and looking for them takes longer than parsing
    data = sys.stdin.buffer.read()
    try:
        word, answer = b"ok\n", _answer(what, data)
    except documents.NotShown as error:
        word, answer = b"no\n", str(error).encode(errors="replace")
    except MemoryError:
        word, answer = b"no\n", b"it needs more memory than a preview may take"
    sys.stdout.buffer.write(word + answer)


def _answer(what: str, data: bytes) -> bytes:
    return documents.figure(data) if what == FIGURE else json.dumps(asdict(documents.document(data))).encode()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
