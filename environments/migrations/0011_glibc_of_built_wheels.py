from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("environments", "0010_curated_versions")]

    operations = [
        migrations.AddField(model, "glibc", models.CharField(blank=True, max_length=20))
        for model in ("builtwheel", "lockedfile")
    ]
