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
        migrations.AddField(
            model_name='slurmpartition',
            name='relay_host',
            field=models.CharField(blank=True, max_length=255),
        ),
        migrations.AddField(
            model_name='slurmpartition',
            name='relay_port',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='slurmpartition',
            name='relay_trouble',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='slurmpartition',
            name='relay_holder',
            field=models.CharField(blank=True, max_length=100),
        ),
        migrations.AddField(
            model_name='slurmpartition',
            name='relay_seen_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
