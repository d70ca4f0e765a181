"""`python -m trainhub_azureml SCRIPT ARGUMENTS` and `python -m trainhub_azureml check PATH...`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

USAGE = """usage: python -m trainhub_azureml SCRIPT [ARGUMENT...]   run a script of Azure ML SDK v1
       python -m trainhub_azureml check PATH... [--json]  say what of scripts and notebooks works"""
WRONG_USAGE = 2


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code. Raises what the script raises."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else WRONG_USAGE
    if arguments[0] == "check":
        from trainhub_azureml.check.report import run_check

        return run_check(arguments[1:])
    from trainhub_azureml.runner import run_script

    if arguments[0] == "run":  # as `trainhub azureml run` has it
        arguments = arguments[1:]
        if not arguments:
            print(USAGE)
            return WRONG_USAGE
    run_script(arguments[0], arguments[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
