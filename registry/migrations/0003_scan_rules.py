"""Give each verdict the number of the rules that it was found by, and rename the verdicts.

Nothing is scanned here: versions of before have the number 0, by which the worker finds them and scans them
again. Until then their tag for MLflow's clients says `pending`, but for those that were found dangerous. """

from __future__ import annotations

from typing import Any

from django.db import migrations, models

RENAMED = {"suspicious": "contains_code", "unscanned": "not_scanned"}
TAG = "trainhub.scan"


def rename_verdicts(apps: Any, schema_editor: Any) -> None:
    versions = apps.get_model("registry", "ModelVersion").objects.using(schema_editor.connection.alias)
    for version in versions.exclude(scan__isnull=True).only("id", "scan", "tags").iterator(chunk_size=200):
        scan = {
            path: {**found, "verdict": RENAMED.get(found["verdict"], found["verdict"])} for path, found in version.scan.items()
        }
        tags = dict(version.tags)
        if tags.get(TAG, "dangerous") != "dangerous":
            tags[TAG] = "pending"
        versions.filter(pk=version.pk).update(scan=scan, tags=tags)


class Migration(migrations.Migration):
    dependencies = [("registry", "0002_certificates")]
    operations = [
        migrations.AddField("modelversion", "scan_rules", models.PositiveSmallIntegerField(default=0)),
        migrations.RunPython(rename_verdicts, migrations.RunPython.noop),
    ]
