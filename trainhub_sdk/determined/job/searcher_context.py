"""How long to train: one operation, as long as the configuration of the experiment says."""

from __future__ import annotations

import enum

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from trainhub_sdk.determined.job.distributed_context import DistributedContext
    from trainhub_sdk.determined.job.train_context import TrainContext


class Unit(enum.Enum):
    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"


class SearcherMode(enum.Enum):
    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"


class SearcherOperation:
    """`length`: how much to train in all, in the unit of the configuration."""

    def __init__(self, length: int, train: TrainContext) -> None:
        self.length = length
        self._train = train
        self._is_completed = False

    def report_progress(self, length: float) -> None:
        """`length`: how much is trained so far."""
        if self._is_completed and length != self.length:
            raise RuntimeError("report_progress() comes before report_completed().")
        self._train.report_progress(min(1.0, max(0.0, length / self.length)))

    def report_completed(self, searcher_metric: Any) -> None:
        """Ends the operation. The value of the metric is reported with the other validation metrics."""
        if self._is_completed:
            raise RuntimeError("report_completed() comes once.")
        self._train.report_progress(1.0)
        self._is_completed = True

    @property
    def is_completed(self) -> bool:
        return self._is_completed


class SearcherContext:
    """`searcher`: that part of the configuration."""

    def __init__(
        self, searcher: Mapping[str, Any], distributed: DistributedContext, train: TrainContext
    ) -> None:
        self._searcher = searcher
        self._distributed = distributed
        self._train = train

    def operations(
        self, searcher_mode: Any = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """Yields one operation. Rank 0 must call its `report_completed`. Raises RuntimeError if the
        configuration has no searcher.max_length."""
        length, _unit = self._length()
        if length is None:
            raise RuntimeError(
                "searcher.operations(): the configuration has no searcher.max_length. Set it, or write the "
                "length into the script."
            )
        if SearcherMode(searcher_mode) is SearcherMode.ChiefOnly and self._distributed.rank != 0:
            raise RuntimeError("Only rank 0 may call operations() with ChiefOnly.")
        operation = SearcherOperation(length, self._train)
        yield operation
        if self._distributed.rank == 0 and not operation.is_completed:
            raise RuntimeError("Call report_completed() on each operation.")

    def get_configured_units(self) -> Unit | None:
        """Returns the unit of the length, None if the configuration has none."""
        return self._length()[1]

    def acknowledge_out_of_ops(self) -> None:
        """Does nothing: there is one operation."""

    def _length(self) -> tuple[int | None, Unit | None]:
        length = self._searcher.get("max_length")
        if length is None:
            length = self._searcher.get("max_time")
        if isinstance(length, dict):
            unit, length = next(iter(length.items()), ("", None))
        else:
            unit = self._searcher.get("unit") or self._searcher.get("time_metric") or ""
        name = str(unit).upper()
        return length, Unit[name] if name in Unit.__members__ else None
