"""Migrations expand first and contract a release later."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import migrations, models
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState

from tests.migrated import PROJECT
from trainhub import __version__
from trainhub.upgrade.expand_rules import MigrationEffect, migration_effect
from trainhub.upgrade.release_record import version_numbers

# The newest migration of each app when the rule began. Earlier ones are of versions that nobody runs any
# more.
RULE_BEGAN = {
    "clusters": 17,
    "datastores": 8,
    "environments": 12,
    "jobs": 34,
    "registry": 5,
    "tracking": 5,
    "trainhub": 1,
    "workspaces": 15,
}


def effect(*operations: Any, **attributes: str) -> MigrationEffect:
    state = ProjectState()
    fields: list[tuple[str, models.Field[Any, Any]]] = [
        ("id", models.BigAutoField(primary_key=True)),
        ("name", models.CharField(max_length=32, db_default="")),
        ("size", models.IntegerField(null=True)),
    ]
    state.add_model(ModelState("jobs", "Thing", fields))
    migration = Migration("0099_things", "jobs")
    # Each migration has a list of its own, which django-stubs does not know.
    migration.operations = list(operations)  # type: ignore[misc]
    for name, value in attributes.items():
        setattr(migration, name, value)
    return migration_effect(migration, state)


def altered(name: str, field: models.Field[Any, Any]) -> Any:
    return migrations.AlterField("thing", name, field)


@pytest.mark.parametrize(
    "operation",
    [
        migrations.CreateModel("Other", [("id", models.BigAutoField(primary_key=True))]),
        migrations.AddField("thing", "note", models.TextField(null=True)),
        migrations.AddField("thing", "note", models.TextField(db_default="")),
        migrations.AddIndex("thing", models.Index(fields=["name"], name="of_name")),
        altered("name", models.CharField(max_length=64, db_default="")),
        altered("name", models.CharField(max_length=32, db_default="", choices=[("a", "b")])),
        altered("name", models.TextField(db_default="")),
        altered("size", models.BigIntegerField(null=True)),
    ],
)
def test_what_only_adds_is_harmless(operation: Any) -> None:
    assert effect(operation).breaks == ()
    assert effect(operation).is_expanding


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (migrations.RemoveField("thing", "size"), "remove field size"),
        (migrations.RenameField("thing", "size", "bytes"), "rename field size"),
        (migrations.DeleteModel("Thing"), "delete model"),
        (migrations.RenameModel("Thing", "Object"), "rename model"),
        (migrations.AddField("thing", "note", models.TextField(default="")), "db_default"),
        (altered("size", models.IntegerField()), "may no longer be empty"),
        (altered("size", models.TextField(null=True)), "becomes a TextField"),
        (altered("name", models.CharField(max_length=8, db_default="")), "becomes shorter"),
        (altered("name", models.CharField(max_length=32, db_default="", unique=True)), "becomes unique"),
        (altered("name", models.CharField(max_length=32)), "loses its default"),
        (migrations.RunSQL("DELETE FROM jobs_thing"), "runs code"),
        (
            migrations.AddConstraint(
                "thing", models.UniqueConstraint(fields=["name"], name="one_of_each_name")
            ),
            "constraint",
        ),
        (migrations.SeparateDatabaseAndState([migrations.RunSQL("DROP TABLE jobs_thing")]), "runs code"),
    ],
)
def test_what_the_version_before_needs_is_a_contraction(operation: Any, words: str) -> None:
    contraction = effect(operation)
    assert words in " ".join(contraction.breaks)
    assert not contraction.is_expanding
    assert effect(operation, safe_because="nothing has written it since 0.0.1").is_expanding


@pytest.mark.django_db
def test_new_migrations_expand_or_say_why_they_contract() -> None:
    loader = MigrationLoader(None)
    plan = MigrationExecutor.__new__(MigrationExecutor)
    plan.loader = loader
    state, wrong = ProjectState(), []
    for migration, _ in plan.migration_plan(loader.graph.leaf_nodes(), clean_start=True):
        found = migration_effect(migration, state)
        if not (PROJECT / migration.app_label / "migrations").is_dir():
            continue
        if not found.breaks or int(migration.name[:4]) <= RULE_BEGAN.get(migration.app_label, 0):
            continue
        is_late = found.unused_since and version_numbers(found.unused_since) < version_numbers(__version__)
        if not (found.safe_because or is_late):
            wrong.append(f"{found.name}: {'; '.join(found.breaks)}")
    assert wrong == [], "CONTRIBUTING.md, House rules"
