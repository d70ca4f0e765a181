"""Rows of nodes that have prepared curated environments survive the migration that tells own ones apart."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from clusters.enrolment import node_tokens
from tests.platform.original_migrations import original_executor

BEFORE = [("jobs", "0014_preempted_by_runs")]
AFTER = [("jobs", "0015_own_prepared_environments")]


@pytest.mark.django_db(transaction=True)
def test_existing_rows_are_kept_but_for_curated_environments_without_a_lock() -> None:
    executor = original_executor(connection)
    executor.migrate(BEFORE)
    try:
        old = executor.loader.project_state(BEFORE).apps.get_model("jobs", "PreparedEnvironment")
        node, _ = node_tokens.enrol_node("local", "alpha")
        for name in ("TrainHub-PyTorch-2.13", "digits"):
            old.objects.create(node_id=node.pk, name=name, version="1", prepared_at=timezone.now(), build_s=5)
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
    new = executor.loader.project_state(AFTER).apps.get_model("jobs", "PreparedEnvironment")
    row = new.objects.get()
    assert (row.name, row.version, row.build_s, row.own_version_id) == ("digits", "1", 5, None)
