from typing import Any

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F


def leave_out_earlier_leases(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001
    """Use counts from now on: whose runs the earlier leases were is not stored with them."""
    apps.get_model("clusters", "Lease").objects.exclude(released_at=None).update(charged_at=F("released_at"))


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0007_separation"),
        ("workspaces", "0006_audit_chain"),
    ]

    operations = [
        migrations.AddField("lease", "person", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("lease", "limit_s", models.PositiveIntegerField(blank=True, null=True)),
        migrations.AddField("lease", "charged_at", models.DateTimeField(blank=True, null=True)),
        migrations.RunPython(leave_out_earlier_leases, migrations.RunPython.noop, elidable=True),
        migrations.AddIndex(
            "lease",
            models.Index(fields=["node"], condition=models.Q(charged_at=None), name="lease_uncharged"),
        ),
        migrations.CreateModel(
            name="ClusterShare",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("share", models.FloatField(validators=[django.core.validators.MinValueValidator(0)])),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="shares", to="clusters.cluster"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="workspaces.workspace"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["cluster", "workspace"], name="one_share_per_workspace")
                ],
            },
        ),
        migrations.CreateModel(
            name="UseAccount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("person", models.BigIntegerField(default=0)),
                ("amount", models.FloatField(default=0.0)),
                ("as_of", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="workspaces.workspace"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["cluster", "workspace", "person"], name="one_use_account")
                ],
            },
        ),
        migrations.CreateModel(
            name="MonthlyUse",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("person", models.BigIntegerField(default=0)),
                ("month", models.DateField(help_text="Its first day.")),
                ("gpu_seconds", models.FloatField(default=0.0)),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="workspaces.workspace"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["workspace", "month", "person"], name="one_use_per_month")
                ],
            },
        ),
    ]
