"""Which files a node has sent. Attempts that nodes hold at the moment of the upgrade go on without it: what
was sent for them before was not recorded."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def mark_held(apps: Any, _: Any) -> None:
    apps.get_model("jobs", "AttemptNode").objects.filter(settled_at=None).exclude(claimed_at=None).update(sends_unrecorded=True)


class Migration(migrations.Migration):
    dependencies = [("jobs", "0008_artifact_node")]
    operations = [
        migrations.AddField(
            "attemptnode",
            "sends_unrecorded",
            models.BooleanField(default=False, help_text="Claimed before the hub recorded which files a node sends."),
        ),
        migrations.CreateModel(
            "SentBlob",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64)),
                (
                    "part",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sent_blobs", to="jobs.attemptnode"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            "sentblob", models.UniqueConstraint(fields=("part", "digest"), name="blob_sent_once_per_part")
        ),
        migrations.RunPython(mark_held, migrations.RunPython.noop),
    ]
