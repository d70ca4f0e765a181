from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("clusters", "0004_slices_set_aside")]
    operations = [migrations.RenameModel("KeptSeries", "StoredSeries")]
