"""The points of a metric of a run, to compare with those that its script must have reported."""

from __future__ import annotations

from trainhub_sdk.run import Run


def curve(run: Run, key: str) -> list[tuple[int, float]]:
    """Returns step and value of each point. A batch that was sent again is there twice on the hub."""
    points = run.metric_points(key)
    rows = points if isinstance(points, list) else points.to_dict("records")
    return sorted({(int(row["step"]), float(row["value"])) for row in rows})
