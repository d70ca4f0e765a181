"""One way to fail: the script that provokes it, how it is started, and what is to be found in its logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """`rank`, `kind` (a Kind's value, "" = none) and `says` (words of the exception): what is to be found.

    `launch`: ranks (one process each, env://), torchrun, launch (torch.distributed.launch), mpi, tensorflow
    (TF_CONFIG).
    `linger_s`: how long the others have to end by themselves before they are told to.
    """

    script: str
    rank: int
    kind: str
    says: str
    launch: str = "ranks"
    processes: int = 1
    linger_s: float = 0.0
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
