"""Checkpoints of the Core API in the folder from which the hub keeps them."""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import contextmanager
from pathlib import Path

from trainhub_sdk.determined.job import checkpoint_folder

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from trainhub_sdk.determined.job.distributed_context import DistributedContext


class CheckpointContext:
    """With `shard`, each rank gives a part, and all must call; otherwise only rank 0 may."""

    def __init__(self, distributed: DistributedContext, root: Path) -> None:
        self._distributed = distributed
        self._root = root

    def upload(
        self,
        ckpt_dir: str | os.PathLike[str] | None,
        metadata: Mapping[str, Any] | None = None,
        *,
        shard: bool = False,
        selector: Callable[[str], bool] | None = None,
    ) -> str:
        """Makes a checkpoint of the files in a folder; with `shard`, None adds nothing. Returns its id."""
        if ckpt_dir is None and not shard:
            raise ValueError("upload: name the folder of the checkpoint.")
        with self.store_path(metadata, shard=shard) as (path, checkpoint_id):
            if ckpt_dir is not None:
                checkpoint_folder.copy_files(Path(ckpt_dir), path, selector)
        return checkpoint_id

    @contextmanager
    def store_path(
        self, metadata: Mapping[str, Any] | None = None, *, shard: bool = False
    ) -> Iterator[tuple[Path, str]]:
        """Yields a folder to write into, and the id of the checkpoint that it becomes when the block ends
        without an exception."""
        if not shard and self._distributed.rank != 0:
            raise RuntimeError(
                f"Only rank 0 may store a checkpoint without shard=True; this is {self._distributed.rank}."
            )
        checkpoint_id = str(uuid.uuid4())
        if shard:
            checkpoint_id = str(self._distributed.broadcast(checkpoint_id))
        path = checkpoint_folder.unfinished_path(checkpoint_id, self._root)
        path.mkdir(parents=True, exist_ok=True)
        try:
            yield path, checkpoint_id
        except BaseException:
            if not shard:
                shutil.rmtree(path, ignore_errors=True)
            raise
        complete = self._merge(metadata) if shard else dict(metadata or {})
        if self._distributed.local_rank == 0:
            checkpoint_folder.finish(checkpoint_id, self._root, complete)
        if shard:
            # Nobody goes on before all parts have their name.
            self._distributed.allgather(None)

    def download(
        self,
        storage_id: str,
        ckpt_dir: str | os.PathLike[str],
        download_mode: Any = None,
        *,
        selector: Callable[[str], bool] | None = None,
    ) -> None:
        """Copies the files of a checkpoint into a folder. Raises FileNotFoundError."""
        source = checkpoint_folder.existing_path(storage_id, self._root)
        Path(ckpt_dir).mkdir(parents=True, exist_ok=True)
        checkpoint_folder.copy_files(source, Path(ckpt_dir), selector)

    @contextmanager
    def restore_path(
        self,
        storage_id: str,
        download_mode: Any = None,
        *,
        selector: Callable[[str], bool] | None = None,
    ) -> Iterator[Path]:
        """Yields the folder of a checkpoint, which is on this node already. Raises FileNotFoundError."""
        yield checkpoint_folder.existing_path(storage_id, self._root)

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Raises FileNotFoundError."""
        return checkpoint_folder.read_metadata(storage_id, self._root)

    def delete(self, storage_id: str) -> None:
        """Removes a checkpoint from this node; the hub keeps as many as the spec says."""
        shutil.rmtree(checkpoint_folder.existing_path(storage_id, self._root))

    def _merge(self, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        """Returns the metadata of all ranks. Raises ValueError if they contradict each other."""
        complete: dict[str, Any] = {}
        for part in self._distributed.allgather(dict(metadata or {})):
            for key, value in part.items():
                if complete.setdefault(key, value) != value:
                    raise ValueError(f"metadata: the ranks give different values for {key!r}.")
        return complete
