import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0011_node_reservations'),
        ('environments', '0001_initial'),
        ('jobs', '0014_preempted_by_runs'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='preparedenvironment',
            name='environment_per_node',
        ),
        migrations.AddField(
            model_name='preparedenvironment',
            name='own_version',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='prepared', to='environments.environmentversion'),
        ),
        migrations.AddConstraint(
            model_name='preparedenvironment',
            constraint=models.UniqueConstraint(condition=models.Q(('own_version', None)), fields=('node', 'name', 'version'), name='environment_per_node'),
        ),
        migrations.AddConstraint(
            model_name='preparedenvironment',
            constraint=models.UniqueConstraint(fields=('own_version', 'node'), name='own_environment_per_node'),
        ),
    ]
