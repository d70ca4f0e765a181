from __future__ import annotations

from tracking.comparison.relations import _tell_apart


def test_a_param_and_a_metric_of_one_name_have_axes_of_their_own() -> None:
    axes = [
        {"label": "lr", "kind": "param"},
        {"label": "lr", "kind": "metric"},
        {"label": "loss", "kind": "metric"},
    ]
    _tell_apart(axes)
    assert [axis["label"] for axis in axes] == ["lr (param)", "lr (metric)", "loss"]
