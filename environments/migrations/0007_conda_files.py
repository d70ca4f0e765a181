from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("environments", "0006_conda")]

    operations = [
        migrations.AddField("lockedfile", "is_conda", models.BooleanField(default=False)),
    ]
