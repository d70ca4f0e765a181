from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0012_cloned_from"),
    ]

    operations = [
        migrations.AddField(
            "run",
            "claimed_at",
            models.DateTimeField(help_text="Since when it is at the head of its cluster.", null=True),
        ),
        migrations.AlterField(
            "run",
            "priority",
            models.SmallIntegerField(default=0, help_text="Higher is placed first."),
        ),
    ]
