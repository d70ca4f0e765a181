from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("environments", "0001_initial")]

    operations = [
        migrations.RenameField("environmentversion", "requirements", "source"),
        migrations.AlterField("environmentversion", "python", models.CharField(blank=True, max_length=10)),
    ]
