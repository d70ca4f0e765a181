"""The SDK beside what it replaces: `Run.log` beside a queue, also while the hub is away; files beside curl.

python -m bench.sdk [--calls 10000] [--away 15] [--mb 500] [--rounds 5]
"""

from __future__ import annotations

import argparse
import sys

from bench.sdk.logging_cost import measure_logging
from bench.sdk.transfers import measure_transfers
from bench.support.limits import Limits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000, help="of Run.log in each round")
    parser.add_argument("--away", type=float, default=15.0, help="seconds without a hub")
    parser.add_argument("--mb", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5, help="of transfers")
    options = parser.parse_args()
    limits = Limits()
    measure_logging(limits, options.calls, options.away)
    measure_transfers(limits, options.mb, options.rounds)
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
