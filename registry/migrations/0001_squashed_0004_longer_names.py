"""The tables of registry in a new database, as 0001 to 0004 make them one after the other.

An older installation goes on with those; one that has applied all of them only records this migration.

Left out is what a new database has no rows for: of 0003, the new names of the verdicts on existing versions.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from workspaces.migration_operations.create_models import CreateModels


class Migration(migrations.Migration):

    replaces = [
        ('registry', '0001_initial'),
        ('registry', '0002_certificates'),
        ('registry', '0003_scan_rules'),
        ('registry', '0004_longer_names'),
    ]

    initial = True

    dependencies = [
        ('jobs', '0006_external_runs'),
        ('tracking', '0001_initial'),
        ('workspaces', '0001_initial'),
    ]

    operations = [
        CreateModels([
            migrations.CreateModel(
                name='RegisteredModel',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=256)),
                    ('description', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('last_version', models.PositiveIntegerField(default=0)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='registered_models', to='workspaces.workspace')),
                    ('protected', models.JSONField(default=list)),
                    ('tags', models.JSONField(default=dict)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                ],
                options={
                    'ordering': ['name'],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'name'), name='model_name_once')],
                },
            ),
            migrations.CreateModel(
                name='ModelVersion',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('number', models.PositiveIntegerField()),
                    ('source_path', models.CharField(max_length=1000)),
                    ('description', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                    ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='model_versions', to='jobs.run')),
                    ('model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='registry.registeredmodel')),
                    ('certificate', models.TextField(blank=True)),
                    ('kind', models.CharField(default='run', max_length=16)),
                    ('logged_model', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='versions', to='tracking.loggedmodel')),
                    ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='derived', to='registry.modelversion')),
                    ('scan', models.JSONField(null=True)),
                    ('signature', models.CharField(blank=True, max_length=128)),
                    ('source', models.CharField(blank=True, max_length=2000)),
                    ('stage', models.CharField(default='None', max_length=16)),
                    ('tags', models.JSONField(default=dict)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                    ('scan_rules', models.PositiveSmallIntegerField(default=0)),
                ],
                options={
                    'ordering': ['-number'],
                    'constraints': [models.UniqueConstraint(fields=('model', 'number'), name='version_number_once')],
                },
            ),
            migrations.CreateModel(
                name='ModelAlias',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=64)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='aliases', to='registry.modelversion')),
                    ('model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='aliases', to='registry.registeredmodel')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('model', 'name'), name='alias_once_per_model')],
                },
            ),
            migrations.CreateModel(
                name='ModelFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('path', models.CharField(max_length=1000)),
                    ('size_bytes', models.BigIntegerField()),
                    ('sha256', models.CharField(db_index=True, max_length=64)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='registry.modelversion')),
                ],
                options={
                    'ordering': ['path'],
                    'constraints': [models.UniqueConstraint(fields=('version', 'path'), name='model_file_once')],
                },
            ),
            migrations.CreateModel(
                name='Export',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('format', models.CharField(default='onnx', max_length=16)),
                    ('options', models.JSONField(default=dict)),
                    ('state', models.CharField(default='waiting', max_length=16)),
                    ('message', models.TextField(blank=True)),
                    ('report', models.JSONField(null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                    ('result', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='made_by', to='registry.modelversion')),
                    ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='exports', to='jobs.run')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='exports', to='registry.modelversion')),
                ],
                options={
                    'ordering': ['-id'],
                },
            ),
        ]),
    ]
