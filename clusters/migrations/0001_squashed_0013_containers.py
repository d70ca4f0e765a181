"""The tables of clusters in a new database, as 0001 to 0013 make them one after the other.

An older installation goes on with those; one that has applied all of them only records this migration.

Left out is what a new database has no rows for: of 0008, that the use of earlier leases does not count.
"""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models
from workspaces.migration_operations.create_models import CreateModels


class Migration(migrations.Migration):

    replaces = [
        ('clusters', '0001_initial'),
        ('clusters', '0002_joining'),
        ('clusters', '0003_monitoring'),
        ('clusters', '0004_slices_set_aside'),
        ('clusters', '0005_stored_series'),
        ('clusters', '0006_unhealthy_gpus'),
        ('clusters', '0007_separation'),
        ('clusters', '0008_fair_share'),
        ('clusters', '0009_quotas'),
        ('clusters', '0010_promised_leases'),
        ('clusters', '0011_node_reservations'),
        ('clusters', '0012_disk_quotas'),
        ('clusters', '0013_containers'),
    ]

    initial = True

    dependencies = [
        ('workspaces', '0013_second_factors'),
    ]

    operations = [
        CreateModels([
            migrations.CreateModel(
                name='Hearing',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('since', models.DateTimeField()),
                    ('until', models.DateTimeField()),
                ],
            ),
            migrations.CreateModel(
                name='Cluster',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.SlugField(unique=True)),
                    ('kind', models.CharField(default='agent', max_length=16)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('workspaces', models.ManyToManyField(blank=True, related_name='clusters', to='workspaces.workspace')),
                    ('description', models.CharField(blank=True, max_length=200)),
                    ('drained_at', models.DateTimeField(blank=True, null=True)),
                    ('deleted_at', models.DateTimeField(blank=True, null=True)),
                    ('idle_s', models.PositiveIntegerField(default=600)),
                    ('low_priority', models.BooleanField(default=False)),
                    ('max_nodes', models.PositiveIntegerField(default=0)),
                    ('min_nodes', models.PositiveIntegerField(default=0)),
                    ('node_gpu_model', models.CharField(blank=True, max_length=64)),
                    ('node_gpus', models.PositiveIntegerField(default=0)),
                    ('node_slots', models.PositiveIntegerField(default=8)),
                    ('provider', models.SlugField(blank=True, help_text='The folder of NODE_PROVIDERS whose executables make and release nodes.')),
                    ('avoid_unhealthy_gpus', models.BooleanField(default=True)),
                ],
            ),
            migrations.CreateModel(
                name='Node',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.SlugField(unique=True)),
                    ('token_digest', models.CharField(max_length=64, unique=True)),
                    ('hostname', models.CharField(blank=True, max_length=255)),
                    ('address', models.CharField(blank=True, max_length=64)),
                    ('interface', models.CharField(blank=True, max_length=32)),
                    ('agent_version', models.CharField(blank=True, max_length=32)),
                    ('cores', models.PositiveIntegerField(default=0)),
                    ('slots', models.PositiveIntegerField(default=0)),
                    ('memory_bytes', models.BigIntegerField(default=0)),
                    ('infiniband', models.BooleanField(default=False)),
                    ('mpi', models.CharField(blank=True, max_length=64)),
                    ('run_as', models.CharField(blank=True, max_length=64)),
                    ('interpreters', models.JSONField(default=list)),
                    ('vitals', models.JSONField(default=dict)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('last_report_at', models.DateTimeField(blank=True, null=True)),
                    ('revoked_at', models.DateTimeField(blank=True, null=True)),
                    ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='nodes', to='clusters.cluster')),
                    ('agent_id', models.CharField(blank=True, help_text='Of the agent process that reported last.', max_length=32)),
                    ('boot_id', models.CharField(blank=True, help_text='Of the machine; another one means that it was restarted.', max_length=64)),
                    ('clock_offset_s', models.FloatField(default=0.0, help_text="The hub's clock less the node's.")),
                    ('cuda', models.CharField(blank=True, max_length=32)),
                    ('drained_at', models.DateTimeField(blank=True, null=True)),
                    ('driver', models.CharField(blank=True, max_length=64)),
                    ('low_priority', models.BooleanField(default=False)),
                    ('monitor_only', models.BooleanField(default=False)),
                    ('nvml', models.CharField(blank=True, help_text='Why its GPUs cannot be read.', max_length=500)),
                    ('removed_at', models.DateTimeField(blank=True, null=True)),
                    ('capabilities', models.CharField(blank=True, db_default='', default='', help_text='Names of what it newly can, by spaces.', max_length=500)),
                    ('separation', models.CharField(blank=True, db_default='', default='', help_text='What keeps its runs apart.', max_length=1000)),
                    ('containers', models.CharField(blank=True, db_default='', default='', help_text='Its container engine, or why there is none.', max_length=1000)),
                ],
            ),
            migrations.CreateModel(
                name='Gpu',
                fields=[
                    ('uuid', models.CharField(max_length=96, primary_key=True, serialize=False)),
                    ('index', models.PositiveIntegerField()),
                    ('name', models.CharField(max_length=100)),
                    ('memory_bytes', models.BigIntegerField(null=True)),
                    ('present', models.BooleanField(default=True)),
                    ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='gpus', to='clusters.node')),
                    ('error', models.TextField(blank=True)),
                    ('mig', models.BooleanField(default=False)),
                    ('parent', models.CharField(blank=True, max_length=96)),
                    ('profile', models.CharField(blank=True, max_length=32)),
                    ('state', models.CharField(default='ok', max_length=16)),
                ],
                options={
                    'ordering': ['node', 'index'],
                },
            ),
            migrations.CreateModel(
                name='Lease',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('holder', models.CharField(db_index=True, max_length=32)),
                    ('attempt', models.PositiveIntegerField()),
                    ('label', models.CharField(help_text="What a waiting run's message calls the holder, e.g. 'run 41'.", max_length=200)),
                    ('gpus', models.JSONField(default=list)),
                    ('slots', models.PositiveIntegerField(default=0)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('released_at', models.DateTimeField(blank=True, null=True)),
                    ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='workspaces.workspace')),
                    ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='leases', to='clusters.node')),
                    ('memory_bytes', models.BigIntegerField(db_default=0, default=0)),
                    ('cpus', models.FloatField(db_default=0.0, default=0.0)),
                    ('person', models.BigIntegerField(db_default=0, default=0)),
                    ('limit_s', models.PositiveIntegerField(blank=True, null=True)),
                    ('charged_at', models.DateTimeField(blank=True, null=True)),
                    ('promised_to', models.CharField(blank=True, db_default='', default='', max_length=32)),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('released_at', None)), fields=['node'], name='lease_held'), models.Index(condition=models.Q(('charged_at', None)), fields=['node'], name='lease_uncharged')],
                    'constraints': [models.UniqueConstraint(fields=('node', 'holder', 'attempt'), name='one_lease_per_node_and_attempt')],
                },
            ),
            migrations.CreateModel(
                name='JoinToken',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('cluster', models.CharField(max_length=50)),
                    ('name', models.CharField(blank=True, max_length=50)),
                    ('digest', models.CharField(max_length=64, unique=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('expires_at', models.DateTimeField()),
                    ('used_at', models.DateTimeField(blank=True, null=True)),
                    ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('node', models.ForeignKey(blank=True, help_text='Who used it.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='clusters.node')),
                    ('monitor_only', models.BooleanField(default=False)),
                ],
            ),
            migrations.CreateModel(
                name='NodeEvent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('kind', models.CharField(max_length=32)),
                    ('message', models.TextField()),
                    ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='clusters.node')),
                    ('code', models.IntegerField(default=0, help_text='Of an XID error its number.')),
                    ('gpu', models.CharField(blank=True, max_length=96)),
                    ('key', models.CharField(blank=True, max_length=80, null=True)),
                ],
                options={
                    'ordering': ['id'],
                    'indexes': [models.Index(condition=models.Q(('gpu', ''), _negated=True), fields=['gpu', 'at'], name='event_of_gpu')],
                    'constraints': [models.UniqueConstraint(fields=('node', 'key'), name='one_event_per_key')],
                },
            ),
            migrations.CreateModel(
                name='Alert',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('key', models.CharField(max_length=200)),
                    ('kind', models.CharField(max_length=32)),
                    ('subject', models.CharField(blank=True, max_length=96)),
                    ('holder', models.CharField(blank=True, help_text='The run that holds the GPU, or that the alert is about.', max_length=32)),
                    ('severity', models.CharField(max_length=16)),
                    ('state', models.CharField(max_length=16)),
                    ('sentence', models.TextField(blank=True)),
                    ('facts', models.JSONField(default=dict)),
                    ('since', models.DateTimeField(default=django.utils.timezone.now, help_text='When the condition was first seen.')),
                    ('fired_at', models.DateTimeField(blank=True, null=True)),
                    ('cleared_at', models.DateTimeField(blank=True, null=True)),
                    ('seen_at', models.DateTimeField(default=django.utils.timezone.now, help_text='When the condition was last found to hold.')),
                    ('node', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='clusters.node')),
                    ('acknowledged_at', models.DateTimeField(blank=True, null=True)),
                    ('acknowledged_by', models.CharField(blank=True, max_length=150)),
                    ('snoozed_by', models.CharField(blank=True, max_length=150)),
                    ('snoozed_until', models.DateTimeField(blank=True, null=True)),
                ],
                options={
                    'ordering': ['-id'],
                    'indexes': [models.Index(condition=models.Q(('state', 'cleared'), _negated=True), fields=['state'], name='alert_open'), models.Index(condition=models.Q(('holder', ''), _negated=True), fields=['holder'], name='alert_of_run')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'cleared'), _negated=True), fields=('key',), name='one_open_alert')],
                },
            ),
            migrations.CreateModel(
                name='ClusterEvent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('kind', models.CharField(max_length=32)),
                    ('message', models.TextField()),
                    ('actor', models.CharField(blank=True, max_length=150)),
                    ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='clusters.cluster')),
                ],
                options={
                    'ordering': ['id'],
                },
            ),
            migrations.CreateModel(
                name='ProvidedMachine',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.SlugField(unique=True)),
                    ('state', models.CharField(max_length=16)),
                    ('provider_id', models.CharField(blank=True, max_length=200)),
                    ('error', models.TextField(blank=True)),
                    ('tries', models.PositiveIntegerField(default=0)),
                    ('failures', models.PositiveIntegerField(default=0)),
                    ('calling_until', models.DateTimeField(blank=True, null=True)),
                    ('asked_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('changed_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('try_again_at', models.DateTimeField(blank=True, null=True)),
                    ('released_at', models.DateTimeField(blank=True, null=True)),
                    ('gone_at', models.DateTimeField(blank=True, null=True)),
                    ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='machines', to='clusters.cluster')),
                    ('node', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='machine', to='clusters.node')),
                    ('token', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='clusters.jointoken')),
                ],
            ),
            migrations.CreateModel(
                name='TelemetryChunk',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('subject', models.CharField(blank=True, max_length=96)),
                    ('step_s', models.PositiveIntegerField()),
                    ('start', models.BigIntegerField()),
                    ('data', models.BinaryField()),
                    ('node', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='clusters.node')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('subject', ''), _negated=True), fields=['subject', 'step_s', 'start'], name='chunk_of_gpu'), models.Index(fields=['step_s', 'start'], name='chunk_age')],
                    'constraints': [models.UniqueConstraint(fields=('node', 'subject', 'step_s', 'start'), name='one_chunk_per_span')],
                },
            ),
            migrations.CreateModel(
                name='TelemetrySlice',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('start', models.BigIntegerField(help_text="Unix seconds by the hub's clock, a multiple of the bucket's length.")),
                    ('data', models.BinaryField()),
                    ('node', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='clusters.node')),
                    ('set_aside', models.SmallIntegerField(editable=False, null=True)),
                ],
                options={
                    'indexes': [models.Index(fields=['start'], name='slice_start')],
                    'constraints': [models.UniqueConstraint(fields=('node', 'start'), name='one_slice_per_node_and_start')],
                    'verbose_name': 'slice of telemetry',
                    'verbose_name_plural': 'slices of telemetry',
                },
            ),
            migrations.CreateModel(
                name='Baseline',
                fields=[
                    ('node', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='baseline', serialize=False, to='clusters.node')),
                    ('ports', models.JSONField(default=dict)),
                    ('ecc', models.JSONField(default=dict)),
                ],
            ),
            migrations.CreateModel(
                name='StoredSeries',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('holder', models.CharField(max_length=32)),
                    ('attempt', models.PositiveIntegerField()),
                    ('node_name', models.CharField(max_length=50)),
                    ('subject', models.CharField(blank=True, max_length=96)),
                    ('step_s', models.PositiveIntegerField()),
                    ('start', models.BigIntegerField()),
                    ('data', models.BinaryField()),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('holder', 'attempt', 'node_name', 'subject'), name='one_kept_series')],
                },
            ),
            migrations.CreateModel(
                name='AlertThreshold',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=32)),
                    ('value', models.FloatField()),
                    ('set_by', models.CharField(max_length=150)),
                    ('set_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='alert_thresholds', to='clusters.cluster')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('cluster', 'name'), name='one_threshold_per_cluster'), models.UniqueConstraint(condition=models.Q(('cluster', None)), fields=('name',), name='one_threshold_for_all')],
                },
            ),
            migrations.CreateModel(
                name='ClusterShare',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('share', models.FloatField(validators=[django.core.validators.MinValueValidator(0)])),
                    ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='shares', to='clusters.cluster')),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('cluster', 'workspace'), name='one_share_per_workspace')],
                },
            ),
            migrations.CreateModel(
                name='UseAccount',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('person', models.BigIntegerField(default=0)),
                    ('amount', models.FloatField(default=0.0)),
                    ('as_of', models.DateTimeField()),
                    ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='clusters.cluster')),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('cluster', 'workspace', 'person'), name='one_use_account')],
                },
            ),
            migrations.CreateModel(
                name='MonthlyUse',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('person', models.BigIntegerField(default=0)),
                    ('month', models.DateField(help_text='Its first day.')),
                    ('gpu_seconds', models.FloatField(default=0.0)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'month', 'person'), name='one_use_per_month')],
                },
            ),
            migrations.CreateModel(
                name='Quota',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('scope', models.CharField(max_length=16)),
                    ('gpus', models.PositiveIntegerField(blank=True, null=True)),
                    ('gpu_hours', models.FloatField(blank=True, null=True)),
                    ('waiting_runs', models.PositiveIntegerField(blank=True, null=True)),
                    ('person', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quotas', to='workspaces.workspace')),
                    ('disk_gib', models.FloatField(blank=True, null=True)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(condition=models.Q(('person', None)), fields=('workspace', 'scope'), name='one_quota_per_scope'), models.UniqueConstraint(fields=('workspace', 'person'), name='one_quota_per_person')],
                },
            ),
            migrations.CreateModel(
                name='NodeReservation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('begins_at', models.DateTimeField()),
                    ('ends_at', models.DateTimeField(db_index=True)),
                    ('note', models.CharField(blank=True, max_length=200)),
                    ('created_by', models.CharField(max_length=150)),
                    ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reservations', to='clusters.node')),
                    ('workspace', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='workspaces.workspace')),
                ],
            ),
            migrations.CreateModel(
                name='DiskUse',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('size_bytes', models.BigIntegerField()),
                    ('measured_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('person', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='disk_uses', to='workspaces.workspace')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(condition=models.Q(('person', None)), fields=('workspace',), name='one_disk_use_per_workspace'), models.UniqueConstraint(fields=('workspace', 'person'), name='one_disk_use_per_person')],
                },
            ),
        ]),
    ]
