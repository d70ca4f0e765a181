"""Ends every session of the versions whose cookie was called `sessionid`.

Browsers may still keep that cookie for 127.0.0.1 and send it to the programs at other ports there; its value
would open the hub under the cookie's new name. People sign in once more. """

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def end_sessions(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("sessions", "Session").objects.using(schema_editor.connection.alias).all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.RunPython(end_sessions, migrations.RunPython.noop),
    ]
