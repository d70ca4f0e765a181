from django.db import migrations, models

import environments.states


class Migration(migrations.Migration):
    dependencies = [("environments", "0005_image_blob")]

    operations = [
        migrations.AlterField(
            "environmentversion",
            "kind",
            models.CharField(
                choices=[("pip", "pip"), ("conda", "conda"), ("image", "image")],
                default=environments.states.EnvironmentKind["PIP"],
                max_length=16,
            ),
        ),
    ]
