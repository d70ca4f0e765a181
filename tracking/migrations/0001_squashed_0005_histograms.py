"""The tables of tracking in a new database, as 0001 to 0005 make them one after the other.

An older installation goes on with those; one that has applied all of them only records this migration.

None of these changes rows, so nothing else is left out.
"""

import django.db.models.deletion
import tracking.models.logged
from django.conf import settings
from django.db import migrations, models
from workspaces.migration_operations.create_models import CreateModels


class Migration(migrations.Migration):

    replaces = [
        ('tracking', '0001_initial'),
        ('tracking', '0002_longer_names'),
        ('tracking', '0003_slices_set_aside'),
        ('tracking', '0004_panel_layout'),
        ('tracking', '0005_histograms'),
    ]

    initial = True

    dependencies = [
        ('jobs', '0011_prepared_environments'),
        ('workspaces', '0002_notifications'),
    ]

    operations = [
        CreateModels([
            migrations.CreateModel(
                name='LoggedModel',
                fields=[
                    ('id', models.CharField(default=tracking.models.logged.new_model_id, editable=False, max_length=34, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=500)),
                    ('model_type', models.CharField(blank=True, max_length=250)),
                    ('status', models.CharField(default='LOGGED_MODEL_PENDING', max_length=40)),
                    ('tags', models.JSONField(default=dict)),
                    ('params', models.JSONField(default=dict)),
                    ('metrics', models.JSONField(default=list)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                    ('deleted_at', models.DateTimeField(blank=True, null=True)),
                    ('experiment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='logged_models', to='jobs.experiment')),
                    ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='logged_models', to='jobs.run')),
                    ('source_run_id', models.CharField(blank=True, max_length=250)),
                ],
            ),
            migrations.CreateModel(
                name='Metric',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('key', models.CharField(max_length=250)),
                    ('count', models.BigIntegerField(default=0)),
                    ('last_value', models.FloatField(null=True)),
                    ('last_step', models.BigIntegerField(default=0)),
                    ('last_ms', models.BigIntegerField(default=0)),
                    ('min_value', models.FloatField(null=True)),
                    ('max_value', models.FloatField(null=True)),
                    ('experiment', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='jobs.experiment')),
                    ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='metrics', to='jobs.run')),
                ],
                options={
                    'indexes': [models.Index(fields=['experiment', 'key', 'last_value', 'run'], name='metric_last'), models.Index(fields=['experiment', 'key', 'min_value', 'run'], name='metric_min'), models.Index(fields=['experiment', 'key', 'max_value', 'run'], name='metric_max')],
                    'constraints': [models.UniqueConstraint(fields=('run', 'key'), name='metric_once_per_run')],
                },
            ),
            migrations.CreateModel(
                name='MetricBlock',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('number', models.PositiveIntegerField()),
                    ('points', models.PositiveIntegerField()),
                    ('data', models.BinaryField()),
                    ('metric', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='blocks', to='tracking.metric')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('metric', 'number'), name='block_once_per_metric')],
                },
            ),
            migrations.CreateModel(
                name='MetricSlice',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('points', models.PositiveIntegerField()),
                    ('data', models.BinaryField()),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='jobs.run')),
                    ('set_aside', models.SmallIntegerField(editable=False, null=True)),
                ],
                options={
                    'verbose_name': 'slice of metrics',
                    'verbose_name_plural': 'slices of metrics',
                },
            ),
            migrations.CreateModel(
                name='Param',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('key', models.CharField(max_length=250)),
                    ('value', models.TextField(blank=True)),
                    ('short', models.CharField(blank=True, max_length=200)),
                    ('number', models.FloatField(null=True)),
                    ('experiment', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='jobs.experiment')),
                    ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='params', to='jobs.run')),
                ],
                options={
                    'indexes': [models.Index(fields=['experiment', 'key', 'short', 'run'], name='param_found'), models.Index(fields=['experiment', 'key', 'number', 'run'], name='param_number')],
                    'constraints': [models.UniqueConstraint(fields=('run', 'key'), name='param_once_per_run')],
                },
            ),
            migrations.CreateModel(
                name='RunInput',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=500)),
                    ('digest', models.CharField(max_length=64)),
                    ('source_type', models.CharField(max_length=64)),
                    ('source', models.TextField()),
                    ('schema', models.TextField(blank=True)),
                    ('profile', models.TextField(blank=True)),
                    ('tags', models.JSONField(default=dict)),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='inputs', to='jobs.run')),
                ],
                options={
                    'ordering': ['id'],
                    'constraints': [models.UniqueConstraint(fields=('run', 'name', 'digest'), name='input_once_per_run')],
                },
            ),
            migrations.CreateModel(
                name='RunOutput',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('step', models.BigIntegerField(default=0)),
                    ('model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tracking.loggedmodel')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='model_outputs', to='jobs.run')),
                ],
                options={
                    'ordering': ['id'],
                    'constraints': [models.UniqueConstraint(fields=('run', 'model'), name='output_once_per_run')],
                },
            ),
            migrations.CreateModel(
                name='SavedView',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=100)),
                    ('query', models.TextField(blank=True)),
                    ('shared', models.BooleanField(default=False)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to='workspaces.workspace')),
                ],
                options={
                    'ordering': ['name'],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'user', 'name'), name='view_name_once')],
                },
            ),
            migrations.CreateModel(
                name='Star',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='stars', to='jobs.run')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='stars', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('user', 'run'), name='star_once')],
                },
            ),
            migrations.CreateModel(
                name='UsageEntry',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('run_number', models.PositiveIntegerField()),
                    ('attempt', models.PositiveIntegerField()),
                    ('month', models.DateField(help_text='Its first day.')),
                    ('experiment_name', models.CharField(max_length=500)),
                    ('user_name', models.CharField(blank=True, max_length=150)),
                    ('cluster_name', models.CharField(blank=True, max_length=100)),
                    ('gpus', models.PositiveIntegerField(default=0)),
                    ('gpu_seconds', models.FloatField(default=0.0)),
                    ('node_seconds', models.FloatField(default=0.0)),
                    ('energy_j', models.FloatField(null=True)),
                    ('is_final', models.BooleanField(default=False)),
                    ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='usage', to='jobs.run')),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='usage', to='workspaces.workspace')),
                ],
                options={
                    'indexes': [models.Index(fields=['workspace', 'month'], name='usage_of_month')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'run_number', 'attempt', 'month'), name='usage_once_per_month')],
                },
            ),
            migrations.CreateModel(
                name='EventFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('attempt', models.PositiveIntegerField()),
                    ('name', models.CharField(max_length=1000)),
                    ('read_bytes', models.BigIntegerField(default=0)),
                    ('is_whole', models.BooleanField(default=False)),
                    ('error', models.CharField(blank=True, max_length=300)),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='event_files', to='jobs.run')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('run', 'attempt', 'name'), name='event_file_once')],
                },
            ),
            migrations.CreateModel(
                name='LoggedModelFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('path', models.CharField(max_length=1000)),
                    ('size_bytes', models.BigIntegerField()),
                    ('sha256', models.CharField(db_index=True, max_length=64)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='tracking.loggedmodel')),
                ],
                options={
                    'ordering': ['path'],
                    'constraints': [models.UniqueConstraint(fields=('model', 'path'), name='logged_model_file_once')],
                },
            ),
            migrations.CreateModel(
                name='PanelLayout',
                fields=[
                    ('experiment', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='panel_layout', serialize=False, to='jobs.experiment')),
                    ('panels', models.JSONField(default=list)),
                    ('revision', models.PositiveIntegerField(default=0)),
                    ('changed_at', models.DateTimeField(auto_now=True)),
                    ('changed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
            ),
            migrations.CreateModel(
                name='Histogram',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('attempt', models.PositiveIntegerField()),
                    ('key', models.CharField(max_length=250)),
                    ('step', models.BigIntegerField()),
                    ('low', models.FloatField()),
                    ('high', models.FloatField()),
                    ('counts', models.JSONField()),
                    ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='histograms', to='jobs.run')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('run', 'attempt', 'key', 'step'), name='histogram_once_per_step')],
                },
            ),
        ]),
    ]
