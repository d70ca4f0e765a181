import django.db.models.deletion
import environments.states
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('workspaces', '0013_second_factors'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Environment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('last_version', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='environments', to='workspaces.workspace')),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='EnvironmentVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('kind', models.CharField(choices=[('pip', 'pip')], default=environments.states.EnvironmentKind['PIP'], max_length=16)),
                ('requirements', models.TextField()),
                ('python', models.CharField(max_length=10)),
                ('lock', models.TextField(blank=True)),
                ('state', models.CharField(choices=[('resolving', 'resolving'), ('locked', 'locked'), ('failed', 'failed')], default=environments.states.VersionState['RESOLVING'], max_length=16)),
                ('failure', models.TextField(blank=True)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('started_at', models.DateTimeField(null=True)),
                ('resolved_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('environment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='environments.environment')),
            ],
            options={
                'ordering': ['-number'],
            },
        ),
        migrations.AddConstraint(
            model_name='environment',
            constraint=models.UniqueConstraint(fields=('workspace', 'name'), name='environment_name_once'),
        ),
        migrations.AddIndex(
            model_name='environmentversion',
            index=models.Index(condition=models.Q(('state', 'resolving')), fields=['created_at'], name='version_resolving'),
        ),
        migrations.AddConstraint(
            model_name='environmentversion',
            constraint=models.UniqueConstraint(fields=('environment', 'number'), name='environment_version_once'),
        ),
    ]
