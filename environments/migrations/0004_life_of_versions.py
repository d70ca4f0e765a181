from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("environments", "0003_package_files")]

    operations = [
        migrations.AddField("environment", "deleted_at", models.DateTimeField(null=True)),
        migrations.AddField("environmentversion", "package_count", models.PositiveIntegerField(null=True)),
        migrations.AddField("environmentversion", "download_bytes", models.PositiveBigIntegerField(null=True)),
        migrations.AddField("environmentversion", "outdated", models.CharField(blank=True, max_length=300)),
        migrations.AddField("environmentversion", "successor", models.CharField(blank=True, max_length=120)),
    ]
