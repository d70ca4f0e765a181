"""Prepares the stacks that py-spy has recorded for a flame graph: without line numbers, which would
split the samples of one function, and without frames that only lead to others, such as threads and
middleware.

python -m bench.run_cost.flame_stacks flame/web.txt | flamegraph.pl --hash > web.svg"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

LINE_NUMBER = re.compile(r":\d+\)$")
LEADING = re.compile(
    r"thread \(|<module> "
    r"|.*\((threading|asgiref/|concurrent/|anyio/|starlette/|<frozen runpy>|asyncio/runners)"
    r"|.*\((django/(core/handlers|utils/deprecation|views)|uvicorn/(server|config))"
)


def folded(lines: Iterable[str]) -> Counter[str]:
    """Returns the number of samples of each stack, its frames from the outermost, separated by semicolons."""
    samples: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        frames = [LINE_NUMBER.sub(")", frame) for frame in stack.split(";")]
        samples[";".join(frame for frame in frames if not LEADING.match(frame))] += int(count)
    return samples


def main() -> int:
    (path,) = sys.argv[1:]
    with Path(path).open() as lines:
        for stack, count in sorted(folded(lines).items()):
            sys.stdout.write(f"{stack} {count}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
