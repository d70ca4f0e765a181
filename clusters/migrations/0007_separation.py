from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0006_unhealthy_gpus")]

    operations = [
        migrations.AddField(
            model_name="node",
            name="capabilities",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Names of what it newly can, by spaces.",
                max_length=500,
            ),
        ),
        migrations.AddField(
            model_name="node",
            name="separation",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="What keeps its runs apart.", max_length=1000
            ),
        ),
        migrations.AddField(
            model_name="lease", name="memory_bytes", field=models.BigIntegerField(db_default=0, default=0)
        ),
        migrations.AddField(
            model_name="lease", name="cpus", field=models.FloatField(db_default=0.0, default=0.0)
        ),
    ]
