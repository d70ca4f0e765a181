from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0009_quotas"),
    ]

    operations = [
        migrations.AddField(
            "lease", "promised_to", models.CharField(blank=True, db_default="", default="", max_length=32)
        ),
    ]
