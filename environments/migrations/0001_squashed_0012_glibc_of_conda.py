"""The tables of environments in a new database, as 0001 to 0012 make them one after the other.

An older installation goes on with those; one that has applied all of them only records this migration.

Left out is what a new database has no rows for: 0012, which reads from existing locks of conda which glibc
their packages need.
"""

import django.db.models.deletion
import environments.states
from django.conf import settings
from django.db import migrations, models
from workspaces.migration_operations.create_models import CreateModels


class Migration(migrations.Migration):

    replaces = [
        ('environments', '0001_initial'),
        ('environments', '0002_source'),
        ('environments', '0003_package_files'),
        ('environments', '0004_life_of_versions'),
        ('environments', '0005_image_blob'),
        ('environments', '0006_conda'),
        ('environments', '0007_made_by_nodes'),
        ('environments', '0008_built_wheels'),
        ('environments', '0009_conda_files'),
        ('environments', '0010_curated_versions'),
        ('environments', '0011_glibc_of_built_wheels'),
        ('environments', '0012_glibc_of_conda'),
    ]

    initial = True

    dependencies = [
        ('workspaces', '0014_service_accounts_and_notices'),
    ]

    operations = [
        CreateModels([
            migrations.CreateModel(
                name='Environment',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=100)),
                    ('last_version', models.PositiveIntegerField(default=0)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='environments', to='workspaces.workspace')),
                    ('deleted_at', models.DateTimeField(null=True)),
                ],
                options={
                    'ordering': ['name'],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'name'), name='environment_name_once'), models.UniqueConstraint(condition=models.Q(('workspace', None)), fields=('name',), name='curated_environment_once')],
                },
            ),
            migrations.CreateModel(
                name='EnvironmentVersion',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('number', models.PositiveIntegerField()),
                    ('kind', models.CharField(choices=[('pip', 'pip'), ('conda', 'conda'), ('image', 'image'), ('dockerfile', 'dockerfile')], default=environments.states.EnvironmentKind['PIP'], max_length=16)),
                    ('python', models.CharField(blank=True, max_length=10)),
                    ('lock', models.TextField(blank=True)),
                    ('state', models.CharField(choices=[('resolving', 'resolving'), ('building', 'building'), ('locked', 'locked'), ('failed', 'failed')], default=environments.states.VersionState['RESOLVING'], max_length=16)),
                    ('failure', models.TextField(blank=True)),
                    ('attempts', models.PositiveSmallIntegerField(default=0)),
                    ('started_at', models.DateTimeField(null=True)),
                    ('resolved_at', models.DateTimeField(null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('environment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='environments.environment')),
                    ('source', models.TextField()),
                    ('package_count', models.PositiveIntegerField(null=True)),
                    ('download_bytes', models.PositiveBigIntegerField(null=True)),
                    ('outdated', models.CharField(blank=True, max_length=300)),
                    ('successor', models.CharField(blank=True, max_length=120)),
                    ('draft', models.TextField(blank=True)),
                ],
                options={
                    'ordering': ['-number'],
                    'indexes': [models.Index(condition=models.Q(('state', 'resolving')), fields=['created_at'], name='version_resolving'), models.Index(condition=models.Q(('state', 'building')), fields=['created_at'], name='version_building')],
                    'constraints': [models.UniqueConstraint(fields=('environment', 'number'), name='environment_version_once')],
                },
            ),
            migrations.CreateModel(
                name='PackageFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('sha256', models.CharField(max_length=64, unique=True)),
                    ('size_bytes', models.BigIntegerField()),
                    ('fetched_at', models.DateTimeField(auto_now_add=True)),
                ],
            ),
            migrations.CreateModel(
                name='LockedFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('project', models.CharField(max_length=200)),
                    ('filename', models.CharField(max_length=255)),
                    ('url', models.TextField()),
                    ('sha256', models.CharField(db_index=True, max_length=64)),
                    ('size_bytes', models.BigIntegerField(default=0)),
                    ('is_preferred', models.BooleanField(default=False)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='environments.environmentversion')),
                    ('is_for_build', models.BooleanField(default=False)),
                    ('is_conda', models.BooleanField(default=False)),
                    ('glibc', models.CharField(blank=True, max_length=20)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('version', 'filename'), name='locked_file_once')],
                },
            ),
            migrations.CreateModel(
                name='ImageBlob',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('sha256', models.CharField(db_index=True, max_length=64)),
                    ('size_bytes', models.BigIntegerField()),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='image_blobs', to='environments.environmentversion')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('version', 'sha256'), name='image_blob_once')],
                },
            ),
            migrations.CreateModel(
                name='BuiltWheel',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('project', models.CharField(max_length=200)),
                    ('project_version', models.CharField(max_length=100)),
                    ('filename', models.CharField(max_length=255)),
                    ('sha256', models.CharField(db_index=True, max_length=64)),
                    ('size_bytes', models.BigIntegerField()),
                    ('build_key', models.CharField(max_length=64)),
                    ('source_sha256', models.CharField(max_length=64)),
                    ('node', models.CharField(blank=True, max_length=100)),
                    ('build', models.CharField(blank=True, max_length=32)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='built_wheels', to='environments.environmentversion')),
                    ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='built_wheels', to='workspaces.workspace')),
                    ('glibc', models.CharField(blank=True, max_length=20)),
                ],
                options={
                    'indexes': [models.Index(fields=['workspace', 'build_key'], name='built_wheel_key')],
                },
            ),
        ]),
    ]
