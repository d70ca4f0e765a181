"""The ranks of a run, and what they tell each other."""

from __future__ import annotations

import os

from trainhub_sdk.job.process_rank import process_rank

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class DistributedContext:
    """`rank` of `size` processes, of which `local_size` are on this node; `cross_rank` of `cross_size` nodes.
    The ranks talk through torch.distributed, which the script has initialized."""

    def __init__(
        self,
        *,
        rank: int,
        size: int,
        local_rank: int,
        local_size: int,
        cross_rank: int,
        cross_size: int,
        chief_ip: str | None = None,
        **_ports: Any,
    ) -> None:
        self.rank, self.size = rank, size
        self.local_rank, self.local_size = local_rank, local_size
        self.cross_rank, self.cross_size = cross_rank, cross_size
        self._group: Any = None

    @classmethod
    def from_torch_distributed(cls, chief_ip: str | None = None) -> DistributedContext:
        """Returns the ranks that the variables of torch.distributed say. Raises RuntimeError without them."""
        missing = [name for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK") if name not in os.environ]
        if missing:
            raise RuntimeError(
                f"from_torch_distributed: {', '.join(missing)} not set. Choose the PyTorch distribution for "
                "the run, or start this process with torchrun."
            )
        return cls.of_process()

    @classmethod
    def from_deepspeed(cls, chief_ip: str | None = None) -> DistributedContext:
        return cls.from_torch_distributed(chief_ip)

    @classmethod
    def of_process(cls) -> DistributedContext:
        """Returns the ranks that the variables of this process say: one of one without any."""
        variables = os.environ
        rank = process_rank()
        size = int(variables.get("WORLD_SIZE") or variables.get("OMPI_COMM_WORLD_SIZE") or rank + 1)
        here = variables.get("LOCAL_WORLD_SIZE") or variables.get("OMPI_COMM_WORLD_LOCAL_SIZE") or 1
        local_rank = variables.get("LOCAL_RANK") or variables.get("OMPI_COMM_WORLD_LOCAL_RANK") or 0
        return cls(
            rank=rank,
            size=size,
            local_rank=int(local_rank),
            local_size=int(here),
            cross_rank=rank // int(here),
            cross_size=max(1, size // int(here)),
        )

    def get_rank(self) -> int:
        return self.rank

    def get_local_rank(self) -> int:
        return self.local_rank

    def get_size(self) -> int:
        return self.size

    def get_num_agents(self) -> int:
        return self.cross_size

    def allgather(self, stuff: Any) -> list[Any]:
        """Returns what all ranks give, by rank. Each of them must call it."""
        if self.size == 1:
            return [stuff]
        torch_distributed, group = self._torch_group()
        values: list[Any] = [None] * self.size
        torch_distributed.all_gather_object(values, stuff, group=group)
        return values

    def gather(self, stuff: Any) -> list[Any] | None:
        """Like `allgather`; returns None for all but the first rank."""
        values = self.allgather(stuff)
        return values if self.rank == 0 else None

    def broadcast(self, stuff: Any) -> Any:
        """Returns what the first rank gives. Each of them must call it."""
        return self.allgather(stuff if self.rank == 0 else None)[0]

    def allgather_local(self, stuff: Any) -> list[Any]:
        """Returns what the ranks of this node give."""
        if self.local_size == 1:
            return [stuff]
        first = self.cross_rank * self.local_size
        return self.allgather(stuff)[first : first + self.local_size]

    def gather_local(self, stuff: Any) -> list[Any] | None:
        values = self.allgather_local(stuff)
        return values if self.local_rank == 0 else None

    def broadcast_local(self, stuff: Any = None) -> Any:
        return self.allgather_local(stuff if self.local_rank == 0 else None)[0]

    def close(self) -> None:
        self._group = None

    def __enter__(self) -> DistributedContext:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _torch_group(self) -> tuple[Any, Any]:
        try:
            import torch.distributed as torch_distributed
        except ImportError as error:
            raise RuntimeError(
                f"{self.size} ranks can exchange values here only through torch.distributed, and PyTorch is "
                "not in the environment of the run."
            ) from error
        if not torch_distributed.is_initialized():
            raise RuntimeError(
                "The ranks cannot exchange values yet: call torch.distributed.init_process_group() before."
            )
        if self._group is None:
            # nccl would need a GPU for each rank's objects.
            self._group = torch_distributed.new_group(backend="gloo")
        return torch_distributed, self._group


class DummyDistributedContext(DistributedContext):
    """One process alone."""

    def __init__(self) -> None:
        super().__init__(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1)
