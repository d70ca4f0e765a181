"""Lists or tests a store, in a process of its own that the child of an order starts."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import obstore
import obstore.exceptions
import obstore.store

from trainhub_launch.data.store_work import carry_out
from trainhub_node.environments.builder_account import end_with_parent


def run() -> NoReturn:
    # The child may be killed: nobody would stop this process then.
    end_with_parent()
    os.umask(0o077)
    carry_out(obstore)
    # Threads that still wait for a store hold nobody.
    sys.stdout.flush()
    os._exit(0)
