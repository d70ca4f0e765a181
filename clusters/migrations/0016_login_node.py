from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0015_slurm'),
    ]

    operations = [
        migrations.RenameField(
            model_name='slurmpartition',
            old_name='known_hosts',
            new_name='host_key',
        ),
        migrations.RemoveField(
            model_name='slurmpartition',
            name='ssh_key',
        ),
        migrations.AddField(
            model_name='slurmpartition',
            name='login_group',
            field=models.CharField(blank=True, max_length=32),
        ),
        migrations.AddField(
            model_name='slurmpartition',
            name='public_key',
            field=models.CharField(blank=True, max_length=200),
        ),
    ]
