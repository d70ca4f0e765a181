from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0003_serving")]

    operations = [
        migrations.AddIndex(model_name="attemptnode", index=models.Index(fields=["settled_at"], name="part_settled")),
    ]
