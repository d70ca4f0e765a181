from django.db import migrations

from workspaces.migration_operations.large_indexes import AddPostgresqlIndex


class Migration(migrations.Migration):
    atomic = False
    is_resumable = True
    safe_because = 'it only adds indexes, none of which refuses a row'

    dependencies = [
        ('jobs', '0038_log_archive'),
    ]

    operations = [
        AddPostgresqlIndex('run_by_name', 'jobs_run (workspace_id, display_name)'),
        AddPostgresqlIndex('run_lasted', 'jobs_run (workspace_id, (finished_at - started_at))'),
    ]
