"""nodes, clusters, gpus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from trainhub_cli.formats import format_gib, format_number, format_time
from trainhub_cli.hub_access import open_api
from trainhub_cli.options import json_option, profile_option, watch_option
from trainhub_cli.printing import print_json
from trainhub_cli.tables import Column, name, number, print_table

GPU_COLUMNS = [
    name("NODE"),
    number("GPU"),
    name("MODEL", 4),
    number("USE %"),
    number("GIB"),
    number("OF"),
    number("W", 2),
    number("C", 3),
    Column("RUN"),
    name("PROBLEM", 1),
]


@click.command("nodes")
@json_option
@profile_option
def list_nodes(as_json: bool) -> None:
    """List the machines of the clusters that the workspace may use."""
    rows = list(open_api().pages("/api/v1/nodes/"))
    if as_json:
        print_json(rows)
        return
    cells = [
        [
            row["name"],
            row["cluster"],
            "drained" if row["drained_at"] and row["status"] == "ready" else row["status"],
            f"{sum(not gpu['held'] for gpu in row['gpus'])}/{len(row['gpus'])}",
            f"{row['slots_free']}/{row['slots']}",
            format_number(row["cpu_pct"]),
            format_gib(row["memory_used_bytes"]),
            format_gib(row["memory_bytes"]),
            format_time(row["last_report_at"]),
            # Earlier hubs do not compare it with their own.
            f"{row.get('agent_version') or '-'}{' (behind)' if row.get('agent_is_behind') else ''}",
        ]
        for row in rows
    ]
    columns = [
        name("NODE"),
        name("CLUSTER", 2),
        Column("STATUS"),
        number("GPUS FREE"),
        number("SLOTS FREE", 3),
    ]
    columns += [
        number("CPU %", 4),
        number("GIB", 5),
        number("OF", 6),
        Column("REPORT", rank=1),
        name("AGENT", 7),
    ]
    print_table(columns, cells, "There are no machines: an operator adds one on the page Clusters.")


@click.command("clusters")
@json_option
@profile_option
def list_clusters(as_json: bool) -> None:
    """List the clusters, with how many GPUs and slots are free."""
    rows = list(open_api().pages("/api/v1/clusters/"))
    if as_json:
        print_json(rows)
        return
    cells = [
        [
            row["name"],
            f"{row['gpus_free']}/{row['gpus']}",
            str(row["gpus_unhealthy"]),
            f"{row['slots_free']}/{row['slots']}",
            str(len(row["nodes"])),
            ", ".join(f"{model['count']} x {model['name']}" for model in row["gpu_models"]),
        ]
        for row in rows
    ]
    columns = [name("CLUSTER"), number("GPUS FREE"), number("UNHEALTHY", 2), number("SLOTS FREE", 3)]
    print_table([*columns, number("NODES", 4), name("MODELS", 1)], cells, "There are no clusters.")


@click.command("gpus")
@watch_option
@json_option
@profile_option
def list_gpus(watch: bool, as_json: bool) -> None:
    """List the GPUs of all machines, with their use, memory, power, temperature and run."""
    api = open_api()

    def read_gpus() -> list[dict[str, Any]]:
        nodes = api.pages("/api/v1/nodes/")
        return [{"node": node["name"], **gpu} for node in nodes for gpu in node["gpus"]]

    if watch:
        from trainhub_cli.live_screen import show_live

        show_live("GPUs", GPU_COLUMNS, lambda: [_gpu_cells(gpu) for gpu in read_gpus()])
    elif as_json:
        print_json(read_gpus())
    else:
        print_table(GPU_COLUMNS, [_gpu_cells(gpu) for gpu in read_gpus()], "The machines have no GPUs.")


def _gpu_cells(gpu: Mapping[str, Any]) -> list[str]:
    return [
        gpu["node"],
        str(gpu["index"]),
        f"{gpu['name']} {gpu['profile']}".strip(),
        _whole(gpu["utilization_pct"]),
        format_gib(gpu["memory_used_bytes"]),
        format_gib(gpu["memory_bytes"]),
        _whole(gpu["power_w"]),
        _whole(gpu["temperature_c"]),
        _holder(gpu["held"]),
        gpu["fault"] or gpu["error"] or ("" if gpu["state"] == "ok" else gpu["state"]),
    ]


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _holder(lease: Mapping[str, Any] | None) -> str:
    return str(lease["title"]) if lease else "free"
