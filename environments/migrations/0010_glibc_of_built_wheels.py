from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("environments", "0009_conda_files")]

    operations = [
        migrations.AddField(model, "glibc", models.CharField(blank=True, max_length=20))
        for model in ("builtwheel", "lockedfile")
    ]
