"""Limits the resources of this process and becomes another program:
`python -m environments.resolving.limited MEMORY_BYTES CPU_S FILE_BYTES PROGRAM ARGUMENT…`."""

from __future__ import annotations

import os
import resource
import sys


def main() -> None:
    memory_bytes, cpu_s, file_bytes = (int(text) for text in sys.argv[1:4])
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(sys.argv[4], sys.argv[4:])  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main()
