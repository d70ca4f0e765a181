"""`python -I -S bare.py child|rank|rsh FOLDER`: the processes that stand between the agent and training.

Isolated, because nothing that a user or an operator installs may change them, and without `site`, which
would cost more than all they do. So neither site-packages nor this package is on the path yet. Each loads
what it needs and no more: a run on one node without MPI waits for nothing that the others take.
"""
# ruff: noqa: E402

from __future__ import annotations

import sys

sys.path.append(__file__.rpartition("/")[0].rpartition("/")[0])
ROLE, FOLDER = sys.argv[1:3]

if ROLE == "rank":
    from trainhub_node.supervisor import rank

    rank.under_mpirun(FOLDER)

if ROLE == "rsh":
    from trainhub_node.supervisor import rsh

    rsh.stay(FOLDER, sys.argv[3:])

from trainhub_node.supervisor import child

GANG = child.prepare(FOLDER)
if not GANG.python:
    from trainhub_node.environments import build

    GANG.go_through(build.build)
if GANG.several:
    from trainhub_node.supervisor import readiness

    GANG.go_through(readiness.reach)
if GANG.under_mpi:
    from trainhub_node.supervisor import mpi_launcher

    GANG.go_through(mpi_launcher.start)
else:
    GANG.go_through(child.start_ranks)

# The ranks run from here on: what they need not wait for is imported now.
from trainhub_node.supervisor import supervise

supervise.keep(GANG)
