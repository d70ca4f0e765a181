"""The tables of jobs in a new database, as 0001 to 0022 make them one after the other.

An older installation goes on with those; one that has applied all of them only records this migration.

Left out is what a new database has no rows for: 0007, which copies the tags of existing runs into rows; of
0009, the mark on what nodes hold at that moment; of 0020, the removal of curated environments that were
prepared without a lock.
"""

import django.db.models.deletion
import django.utils.timezone
import jobs.builds.models
import jobs.builds.states
import jobs.hub_files.states
import jobs.models
import jobs.states
import uuid
from django.conf import settings
from django.db import migrations, models
from workspaces.migration_operations.create_models import CreateModels


class Migration(migrations.Migration):

    replaces = [
        ('jobs', '0001_initial'),
        ('jobs', '0002_gangs'),
        ('jobs', '0003_serving'),
        ('jobs', '0004_settled_parts'),
        ('jobs', '0005_preempted'),
        ('jobs', '0006_external_runs'),
        ('jobs', '0007_spec_tags'),
        ('jobs', '0008_artifact_node'),
        ('jobs', '0009_sent_blobs'),
        ('jobs', '0010_longer_names'),
        ('jobs', '0011_prepared_environments'),
        ('jobs', '0012_cloned_from'),
        ('jobs', '0013_head_of_the_queue'),
        ('jobs', '0014_preempted_by_runs'),
        ('jobs', '0015_own_prepared_environments'),
        ('jobs', '0016_environment_builds'),
        ('jobs', '0017_snapshot_scans'),
        ('jobs', '0018_version_builds'),
        ('jobs', '0019_file_fetch'),
        ('jobs', '0020_builds_of_nobody'),
        ('jobs', '0021_git_sources'),
        ('jobs', '0022_checkpoints'),
    ]

    initial = True

    dependencies = [
        ('clusters', '0012_disk_quotas'),
        ('environments', '0009_conda_files'),
        ('workspaces', '0014_service_accounts_and_notices'),
    ]

    operations = [
        CreateModels([
            migrations.CreateModel(
                name='Attempt',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('number', models.PositiveIntegerField()),
                    ('placement', models.JSONField()),
                    ('plan', models.JSONField(null=True)),
                    ('token_digest', models.CharField(blank=True, db_index=True, max_length=64)),
                    ('warnings', models.JSONField(default=list)),
                    ('failing', models.BooleanField(default=False, help_text='It cannot succeed any more: every node is to end its part.')),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='jobs.run')),
                    ('cause', models.JSONField(help_text="Why it failed, as read out of the ranks' logs (jobs.causes); null: not read.", null=True)),
                    ('served', models.BooleanField(default=False, help_text='Every deciding rank has succeeded: those that only serve are to end.')),
                    ('preempted_by', models.CharField(blank=True, db_default='', default='', max_length=100)),
                    ('pending_checkpoints', models.JSONField(db_default=[], default=list)),
                    ('restores', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='restored_by', to='jobs.checkpoint')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('run', 'number'), name='attempt_number_once')],
                },
            ),
            migrations.CreateModel(
                name='Experiment',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=500)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='experiments', to='workspaces.workspace')),
                    ('deleted_at', models.DateTimeField(blank=True, null=True)),
                    ('tags', models.JSONField(blank=True, default=dict)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'name'), name='experiment_name_once')],
                },
            ),
            migrations.CreateModel(
                name='Member',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('rank', models.PositiveIntegerField()),
                    ('local_rank', models.PositiveIntegerField()),
                    ('role', models.CharField(blank=True, max_length=16)),
                    ('log_name', models.CharField(max_length=128)),
                    ('gpus', models.JSONField(default=list)),
                    ('decides', models.BooleanField(default=True)),
                    ('state', models.CharField(choices=[('Waiting', 'Waiting'), ('Running', 'Running'), ('Succeeded', 'Succeeded'), ('Failed', 'Failed'), ('Stopped', 'Stopped'), ('Lost', 'Lost')], default=jobs.states.MemberState['WAITING'], max_length=16)),
                    ('pid', models.PositiveIntegerField(null=True)),
                    ('exit_code', models.IntegerField(null=True)),
                    ('signal', models.PositiveIntegerField(null=True)),
                    ('log_bytes', models.BigIntegerField(null=True)),
                    ('started_at', models.DateTimeField(null=True)),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('attempt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='members', to='jobs.attempt')),
                    ('node', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='clusters.node')),
                ],
                options={
                    'ordering': ['rank'],
                    'constraints': [models.UniqueConstraint(fields=('attempt', 'rank'), name='rank_once_per_attempt')],
                },
            ),
            migrations.CreateModel(
                name='Run',
                fields=[
                    ('id', models.CharField(default=jobs.models.new_run_id, editable=False, max_length=32, primary_key=True, serialize=False)),
                    ('number', models.PositiveIntegerField()),
                    ('kind', models.CharField(default='job', max_length=16)),
                    ('display_name', models.CharField(max_length=500)),
                    ('spec', models.JSONField(default=dict)),
                    ('preview', models.JSONField(null=True)),
                    ('state', models.CharField(choices=[('Queued', 'Queued'), ('Provisioning', 'Provisioning'), ('Preparing', 'Preparing'), ('Running', 'Running'), ('Finalizing', 'Finalizing'), ('CancelRequested', 'CancelRequested'), ('Completed', 'Completed'), ('Failed', 'Failed'), ('Canceled', 'Canceled')], db_index=True, default=jobs.states.RunState['QUEUED'], max_length=16)),
                    ('reason', models.CharField(blank=True, choices=[('', ''), ('completed', 'completed'), ('exited', 'exited'), ('signaled', 'signaled'), ('out_of_memory', 'out_of_memory'), ('canceled', 'canceled'), ('timed_out', 'timed_out'), ('node_lost', 'node_lost'), ('node_revoked', 'node_revoked'), ('preempted', 'preempted'), ('preempted_by_run', 'preempted_by_run'), ('never_started', 'never_started'), ('never_ready', 'never_ready'), ('mismatch', 'mismatch'), ('environment_failed', 'environment_failed'), ('snapshot_failed', 'snapshot_failed'), ('launch_failed', 'launch_failed'), ('upload_failed', 'upload_failed'), ('does_not_fit', 'does_not_fit'), ('not_fitting_yet', 'not_fitting_yet'), ('orphaned', 'orphaned'), ('disk_limit', 'disk_limit'), ('disk_full', 'disk_full'), ('node_error', 'node_error'), ('internal', 'internal')], default=jobs.states.Reason['NONE'], max_length=32)),
                    ('facts', models.JSONField(default=dict)),
                    ('attempt', models.PositiveIntegerField(default=0, help_text='Number of the latest attempt; 0 before the first.')),
                    ('created_at', models.DateTimeField(auto_now_add=True, db_index=True)),
                    ('started_at', models.DateTimeField(blank=True, help_text='First entered Running.', null=True)),
                    ('finished_at', models.DateTimeField(blank=True, null=True)),
                    ('state_since', models.DateTimeField(default=django.utils.timezone.now)),
                    ('idempotency_key', models.CharField(blank=True, max_length=128, null=True)),
                    ('pinned', models.BooleanField(default=False)),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to=settings.AUTH_USER_MODEL)),
                    ('experiment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='jobs.experiment')),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='workspaces.workspace')),
                    ('priority', models.SmallIntegerField(default=0, help_text='Higher is placed first.')),
                    ('archived_at', models.DateTimeField(blank=True, null=True)),
                    ('deleted_at', models.DateTimeField(blank=True, null=True)),
                    ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='children', to='jobs.run')),
                    ('cloned_from', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='clones', to='jobs.run')),
                    ('claimed_at', models.DateTimeField(help_text='Since when it is at the head of its cluster.', null=True)),
                ],
                options={
                    'ordering': ['-created_at'],
                    'indexes': [models.Index(fields=['workspace', '-created_at'], name='run_newest'), models.Index(fields=['experiment', '-created_at'], name='run_of_experiment'), models.Index(condition=models.Q(('deleted_at', None), _negated=True), fields=['deleted_at'], name='run_deleted')],
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'number'), name='run_number_once'), models.UniqueConstraint(fields=('workspace', 'idempotency_key'), name='idempotency_key_once')],
                },
            ),
            migrations.CreateModel(
                name='Draft',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('steps', models.JSONField(default=dict)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='drafts', to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='drafts', to='workspaces.workspace')),
                    ('submitted_run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='jobs.run')),
                    ('cloned_from', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='jobs.run')),
                ],
            ),
            migrations.CreateModel(
                name='Artifact',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('attempt', models.PositiveIntegerField()),
                    ('path', models.CharField(max_length=1000)),
                    ('size_bytes', models.BigIntegerField()),
                    ('sha256', models.CharField(db_index=True, max_length=64)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='jobs.run')),
                    ('node_rank', models.PositiveIntegerField(blank=True, null=True)),
                ],
                options={
                    'ordering': ['path'],
                    'constraints': [models.UniqueConstraint(fields=('run', 'attempt', 'path'), name='artifact_path_once')],
                },
            ),
            migrations.CreateModel(
                name='RunEvent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('attempt', models.PositiveIntegerField(default=0)),
                    ('from_state', models.CharField(blank=True, max_length=16)),
                    ('to_state', models.CharField(blank=True, help_text='Empty: something happened, the state stayed.', max_length=16)),
                    ('reason', models.CharField(blank=True, max_length=32)),
                    ('message', models.TextField(blank=True)),
                    ('actor', models.CharField(blank=True, help_text="A person's name, 'node NAME', or 'hub'.", max_length=150)),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='jobs.run')),
                ],
                options={
                    'ordering': ['id'],
                },
            ),
            migrations.CreateModel(
                name='Snapshot',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('sha256', models.CharField(max_length=64)),
                    ('size_bytes', models.BigIntegerField()),
                    ('manifest', models.JSONField()),
                    ('warnings', models.JSONField(default=list)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='snapshots', to='workspaces.workspace')),
                    ('scans', models.JSONField(default=dict)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('workspace', 'sha256'), name='snapshot_once_per_workspace')],
                },
            ),
            migrations.CreateModel(
                name='AttemptNode',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('node_rank', models.PositiveIntegerField()),
                    ('nonce', models.CharField(blank=True, help_text='Set by the first claim; only the same one is answered again.', max_length=32)),
                    ('claimed_at', models.DateTimeField(blank=True, null=True)),
                    ('ports', models.JSONField(default=list, help_text='Free there when the node last asked for its part.')),
                    ('phase', models.CharField(blank=True, max_length=16)),
                    ('fact', models.JSONField(default=dict)),
                    ('settled_at', models.DateTimeField(blank=True, null=True)),
                    ('attempt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='jobs.attempt')),
                    ('node', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='parts', to='clusters.node')),
                    ('daemon', models.JSONField(default=list, help_text='argv of the MPI daemon that the head wants here; the first call holds.')),
                    ('sends_unrecorded', models.BooleanField(default=False, help_text='Claimed before the hub recorded which files a node sends.')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('attempt', 'node'), name='one_part_per_node')],
                    'indexes': [models.Index(fields=['settled_at'], name='part_settled')],
                },
            ),
            migrations.CreateModel(
                name='RunTag',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('key', models.CharField(max_length=250)),
                    ('value', models.TextField(blank=True)),
                    ('short', models.CharField(blank=True, max_length=200)),
                    ('experiment', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='jobs.experiment')),
                    ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='tags', to='jobs.run')),
                ],
                options={
                    'indexes': [models.Index(fields=['experiment', 'key', 'short', 'run'], name='tag_found')],
                    'constraints': [models.UniqueConstraint(fields=('run', 'key'), name='tag_once_per_run')],
                },
            ),
            migrations.CreateModel(
                name='SentBlob',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('digest', models.CharField(max_length=64)),
                    ('part', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sent_blobs', to='jobs.attemptnode')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('part', 'digest'), name='blob_sent_once_per_part')],
                },
            ),
            migrations.CreateModel(
                name='PreparedEnvironment',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=200)),
                    ('version', models.CharField(max_length=50)),
                    ('prepared_at', models.DateTimeField()),
                    ('built_at', models.DateTimeField(null=True)),
                    ('build_s', models.FloatField(null=True)),
                    ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='prepared_environments', to='clusters.node')),
                    ('own_version', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='prepared', to='environments.environmentversion')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(condition=models.Q(('own_version', None)), fields=('node', 'name', 'version'), name='environment_per_node'), models.UniqueConstraint(fields=('own_version', 'node'), name='own_environment_per_node')],
                },
            ),
            migrations.CreateModel(
                name='EnvironmentBuild',
                fields=[
                    ('id', models.CharField(default=jobs.builds.models.new_build_id, editable=False, max_length=32, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=200)),
                    ('version', models.CharField(max_length=50)),
                    ('state', models.CharField(choices=[('queued', 'queued'), ('building', 'building'), ('built', 'built'), ('failed', 'failed'), ('canceled', 'canceled')], default=jobs.builds.states.BuildState['QUEUED'], max_length=16)),
                    ('reason', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('offered_at', models.DateTimeField(null=True)),
                    ('nonce', models.CharField(blank=True, max_length=32)),
                    ('claimed_at', models.DateTimeField(null=True)),
                    ('started_at', models.DateTimeField(null=True)),
                    ('cancel_requested_at', models.DateTimeField(null=True)),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('settled_at', models.DateTimeField(null=True)),
                    ('phase', models.CharField(blank=True, max_length=16)),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='environment_builds', to='clusters.node')),
                    ('own_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='environment_builds', to='environments.environmentversion')),
                    ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='environment_builds', to='workspaces.workspace')),
                    ('is_lost', models.BooleanField(default=False)),
                    ('order_number', models.PositiveSmallIntegerField(default=1)),
                    ('purpose', models.CharField(choices=[('install', 'install'), ('make', 'make')], default=jobs.builds.states.BuildPurpose['INSTALL'], max_length=16)),
                ],
                options={
                    'ordering': ['-created_at'],
                    'indexes': [models.Index(condition=models.Q(('settled_at', None)), fields=['node'], name='build_unsettled'), models.Index(fields=['workspace', 'name', 'version', '-created_at'], name='build_newest')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('workspace', 'node', 'name', 'version'), name='build_once_at_a_time'), models.UniqueConstraint(condition=models.Q(('offered_at__isnull', False), ('settled_at', None)), fields=('node',), name='one_build_per_node')],
                },
            ),
            migrations.CreateModel(
                name='BuildFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('sha256', models.CharField(db_index=True, max_length=64)),
                    ('size_bytes', models.BigIntegerField()),
                    ('build', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='jobs.environmentbuild')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('build', 'sha256'), name='build_file_once')],
                },
            ),
            migrations.CreateModel(
                name='FileFetch',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('state', models.CharField(choices=[('waiting', 'waiting'), ('fetching', 'fetching'), ('fetched', 'fetched'), ('failed', 'failed')], default=jobs.hub_files.states.FetchState['WAITING'], max_length=16)),
                    ('failure', models.TextField(blank=True)),
                    ('attempts', models.PositiveSmallIntegerField(default=0)),
                    ('arriving_bytes', models.BigIntegerField(default=0)),
                    ('ordered_at', models.DateTimeField(auto_now_add=True)),
                    ('reported_at', models.DateTimeField(null=True)),
                    ('version', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='file_fetch', to='environments.environmentversion')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('state__in', ['waiting', 'fetching'])), fields=['ordered_at'], name='fetch_active')],
                },
            ),
            migrations.CreateModel(
                name='FetchedCommit',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('url', models.CharField(max_length=1000)),
                    ('ref', models.CharField(blank=True, max_length=200)),
                    ('path', models.CharField(blank=True, max_length=1000)),
                    ('commit', models.CharField(max_length=64)),
                    ('branch', models.CharField(blank=True, max_length=200)),
                    ('warnings', models.JSONField(default=list)),
                    ('fetched_at', models.DateTimeField(auto_now=True)),
                    ('fetched_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                    ('snapshot', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='commits', to='jobs.snapshot')),
                    ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='fetched_commits', to='workspaces.workspace')),
                ],
                options={
                    'indexes': [models.Index(fields=['workspace', 'commit'], name='fetched_commit_of_workspace')],
                },
            ),
            migrations.CreateModel(
                name='Checkpoint',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('attempt', models.PositiveIntegerField()),
                    ('number', models.PositiveIntegerField()),
                    ('name', models.CharField(max_length=200)),
                    ('sign', models.CharField(blank=True, max_length=16)),
                    ('state', models.CharField(choices=[('collecting', 'Collecting'), ('complete', 'Complete'), ('unconfirmed', 'Unconfirmed'), ('torn', 'Torn')], default='collecting', max_length=16)),
                    ('origin', models.CharField(blank=True, max_length=100)),
                    ('detail', models.CharField(blank=True, max_length=500)),
                    ('size_bytes', models.BigIntegerField(default=0)),
                    ('file_count', models.PositiveIntegerField(default=0)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('finished_at', models.DateTimeField(null=True)),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='checkpoints', to='jobs.run')),
                ],
                options={
                    'ordering': ['number'],
                    'indexes': [models.Index(condition=models.Q(('state', 'collecting')), fields=['run'], name='checkpoint_collecting')],
                    'constraints': [models.UniqueConstraint(fields=('run', 'number'), name='checkpoint_number_once')],
                },
            ),
            migrations.CreateModel(
                name='CheckpointFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('node_rank', models.PositiveIntegerField()),
                    ('path', models.CharField(max_length=1000)),
                    ('size_bytes', models.BigIntegerField()),
                    ('sha256', models.CharField(db_index=True, max_length=64)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('checkpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='jobs.checkpoint')),
                ],
                options={
                    'ordering': ['path', 'node_rank'],
                    'constraints': [models.UniqueConstraint(fields=('checkpoint', 'node_rank', 'path'), name='checkpoint_file_once')],
                },
            ),
            migrations.CreateModel(
                name='CheckpointPart',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('node_rank', models.PositiveIntegerField()),
                    ('version', models.CharField(blank=True, max_length=64)),
                    ('is_delivered', models.BooleanField(default=False)),
                    ('checkpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='jobs.checkpoint')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('checkpoint', 'node_rank'), name='checkpoint_part_once')],
                },
            ),
            migrations.CreateModel(
                name='FinalFolder',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('names', models.JSONField(default=list)),
                    ('part', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='final_checkpoints', to='jobs.attemptnode')),
                ],
            ),
        ]),
    ]
