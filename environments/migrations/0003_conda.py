from django.db import migrations, models

import environments.states


class Migration(migrations.Migration):
    dependencies = [("environments", "0002_source")]

    operations = [
        migrations.AlterField(
            "environmentversion",
            "kind",
            models.CharField(
                choices=[("pip", "pip"), ("conda", "conda")],
                default=environments.states.EnvironmentKind["PIP"],
                max_length=16,
            ),
        ),
    ]
