"""The tags of a spec become rows, which can be searched and changed."""

from __future__ import annotations

from typing import Any

from django.db import migrations

LONGEST_KEY = 250
SHORT = 200
AT_ONCE = 500


def to_rows(apps: Any, _: Any) -> None:
    run_model, tag_model = apps.get_model("jobs", "Run"), apps.get_model("jobs", "RunTag")
    rows = []
    for run in run_model.objects.only("pk", "experiment_id", "spec").order_by("pk").iterator(AT_ONCE):
        for key, value in (run.spec.get("tags") or {}).items():
            rows.append(
                tag_model(
                    run_id=run.pk, experiment_id=run.experiment_id, key=key[:LONGEST_KEY], value=value, short=value[:SHORT]
                )
            )
    tag_model.objects.bulk_create(rows, batch_size=AT_ONCE, ignore_conflicts=True)


class Migration(migrations.Migration):
    dependencies = [("jobs", "0006_external_runs")]
    operations = [migrations.RunPython(to_rows, migrations.RunPython.noop)]
