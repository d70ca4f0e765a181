"""The library's C files: they compile without a warning, and none needs, over others, itself."""

from __future__ import annotations

import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

from simulator.build import FLAGS, SOURCES, _compiler


def test_compile_without_warnings_and_form_no_circle(tmp_path: Path) -> None:
    flags = [flag for flag in FLAGS if flag != "-shared" and not flag.startswith("-Wl")]
    defines: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    for source in sorted(SOURCES.glob("*.c")):
        made = tmp_path / f"{source.stem}.o"
        subprocess.run(
            [_compiler(), *flags, "-Werror", "-c", "-o", str(made), str(source)], check=True, timeout=60
        )
        listed = subprocess.run(
            ["nm", "--format=posix", str(made)], check=True, capture_output=True, text=True, timeout=60
        )
        needs[source.name] = set()
        for name, kind, *_ in (line.split() for line in listed.stdout.splitlines()):
            if kind == "U":
                needs[source.name].add(name)
            elif kind.isupper():
                defines[name] = source.name
    graph = {
        file: {defines[name] for name in names if name in defines} - {file} for file, names in needs.items()
    }
    assert graph["session.c"] >= {"holders.c", "mig_calls.c", "clock.c", "scenario.c"}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert set(order) == set(graph)
