from django.db import migrations, models

from workspaces.migration_operations.large_indexes import AddLargeIndex, AddPostgresqlIndex


class Migration(migrations.Migration):
    atomic = False
    is_resumable = True
    safe_because = 'it only adds indexes, none of which refuses a row'

    dependencies = [
        ('jobs', '0036_log_shipping'),
    ]

    operations = [
        AddLargeIndex(
            model_name='run',
            index=models.Index(fields=['workspace', '-finished_at'], name='run_ended'),
        ),
        AddLargeIndex(
            model_name='run',
            index=models.Index(
                condition=models.Q(('deleted_at', None)),
                fields=['experiment', 'state', 'number'],
                name='run_state_counts',
            ),
        ),
        AddLargeIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('pinned', True)), fields=['workspace'], name='run_pinned'),
        ),
        AddPostgresqlIndex('run_of_cluster', "jobs_run (workspace_id, (spec #>> '{resources,cluster}'))"),
        AddPostgresqlIndex('run_of_environment', "jobs_run (workspace_id, (spec #>> '{environment,name}'))"),
        AddPostgresqlIndex('run_of_source', "jobs_run (workspace_id, (spec #> '{source,id}'))"),
        AddPostgresqlIndex('run_name_parts', 'jobs_run USING gin (display_name gin_trgm_ops)', 'pg_trgm'),
    ]
