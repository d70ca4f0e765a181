"""`python -I -S bare.py child|rank FOLDER`: the processes that stand between the agent and training.

Isolated, because nothing that a user or an operator installs may change them, and without `site`, which
would cost more than all they do. So neither site-packages nor this package is on the path yet.
"""
# ruff: noqa: E402

from __future__ import annotations

import sys

sys.path.append(__file__.rpartition("/")[0].rpartition("/")[0])
ROLE, FOLDER = sys.argv[1:3]

if ROLE == "rank":
    from trainhub_node import rank

    rank.under_mpirun(FOLDER)

from trainhub_node import child

GANG = child.start(FOLDER)

# The ranks run from here on: what they need not wait for is imported now.
from trainhub_node import keeping

keeping.keep(GANG)
