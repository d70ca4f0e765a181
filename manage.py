#!/usr/bin/env python
from __future__ import annotations

import os
import sys


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this is where an older interpreter gets its sentence
        return int(
            bool(
                sys.stderr.write(f"TrainHub needs Python 3.11 or newer; this is {sys.version.split()[0]}.\n")
            )
        )
    if sys.argv[1:2] == ["up"]:
        if sys.argv[2:] == ["--demo"]:
            from trainhub.up.demo_folder import turn_to

            turn_to()
        if sys.argv[2:3] == ["--only"]:
            from trainhub.up.server_names import set_default_name

            set_default_name(sys.argv[3:])
        # The supervisor stays small: Django is loaded only in the processes that it starts.
        from trainhub.up.command import main as up

        return up(sys.argv[2:])
    from trainhub.up.separation.account_switch import enter

    enter()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
