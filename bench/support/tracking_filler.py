"""Fills the database of a hub: a process of its own, started by bench.tracking with that hub's settings.

python -m bench.support.tracking_filler {runs N | curve N}; prints the id of a curve's run.
"""

from __future__ import annotations

import os
import random
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django.setup()

from bench.support import run_filler  # noqa: E402 - only now are the models there
from jobs.models import Experiment, Run  # noqa: E402
from tracking.metrics.compaction import fold_run  # noqa: E402
from tracking.metrics.point_writer import Point, append  # noqa: E402
from workspaces.models import User, Workspace  # noqa: E402

FIRST_MS = 1_700_000_000_000
AT_ONCE = 10_000


def runs(count: int) -> None:
    # Another seed each time: the ids come from it.
    run_filler.fill(count, Workspace.objects.get(), user=User.objects.get(username="admin"), seed=count)
    run_filler.analyze()


def curve(count: int) -> None:
    workspace = Workspace.objects.get()
    workspace.last_run_number += 1
    workspace.save(update_fields=["last_run_number"])
    experiment, _ = Experiment.objects.get_or_create(workspace=workspace, name=f"curve-{count}")
    run = Run.objects.create(
        number=workspace.last_run_number,
        workspace=workspace,
        experiment=experiment,
        kind="external",
        display_name="long",
        state="Completed",
    )
    chance = random.Random(7)
    for first in range(0, count, AT_ONCE):
        steps = range(first, min(count, first + AT_ONCE))
        append(
            run.pk, experiment.pk, [Point("loss", chance.random(), step, FIRST_MS + step) for step in steps]
        )
    while fold_run(run.pk):
        pass
    print(run.pk)


if __name__ == "__main__":
    {"runs": runs, "curve": curve}[sys.argv[1]](int(sys.argv[2]))
