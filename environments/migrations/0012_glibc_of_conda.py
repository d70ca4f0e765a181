from __future__ import annotations

import json
import re
from typing import Any

from django.db import migrations

GLIBC = re.compile(r"__glibc\s.*?>=?\s*(\d{1,3}(?:\.\d{1,4}){1,3})")


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def read_locks(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001
    """Notes for packages of conda that are locked already which glibc they need."""
    version_model = apps.get_model("environments", "EnvironmentVersion")
    file_model = apps.get_model("environments", "LockedFile")
    versions = version_model.objects.filter(kind="conda").exclude(lock="")
    for pk, lock in versions.values_list("pk", "lock").iterator():
        files: dict[str, list[str]] = {}
        for package in json.loads(lock)["packages"]:
            needs = [match[1] for match in map(GLIBC.match, package["depends"]) if match]
            newest = max(needs, key=numbers, default="")
            # What every node has is not noted.
            if newest and numbers(newest) > [2, 17]:
                files.setdefault(newest, []).append(package["file"])
        for glibc, names in files.items():
            rows = file_model.objects.filter(version_id=pk, is_conda=True, filename__in=names)
            rows.update(glibc=glibc)


class Migration(migrations.Migration):
    dependencies = [("environments", "0011_glibc_of_built_wheels")]

    operations = [
        migrations.RunPython(read_locks, migrations.RunPython.noop),
    ]
