from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("environments", "0008_built_wheels")]

    operations = [
        migrations.AddField("lockedfile", "is_conda", models.BooleanField(default=False)),
    ]
