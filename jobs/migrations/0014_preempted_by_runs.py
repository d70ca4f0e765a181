from django.db import migrations, models

import jobs.states


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0013_head_of_the_queue"),
    ]

    operations = [
        migrations.AddField(
            "attempt",
            "preempted_by",
            models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
        migrations.AlterField(
            "run",
            "reason",
            models.CharField(
                blank=True,
                choices=[(reason.value, reason.value) for reason in jobs.states.Reason],
                default=jobs.states.Reason["NONE"],
                max_length=32,
            ),
        ),
    ]
