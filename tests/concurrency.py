"""Work that several threads do at the same time, each with a connection to the database of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connection


def run_at_once(*works: Callable[[], object]) -> None:
    """Runs all of them, each in a thread, from one moment on. Fails if one of them raises."""
    barrier = threading.Barrier(len(works))
    failures: list[Exception] = []

    def run(work: Callable[[], object]) -> None:
        try:
            barrier.wait(10)
            work()
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
