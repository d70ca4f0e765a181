from __future__ import annotations

import pytest

from trainhub_node.data.slow_mounts import slow_mount_sentence

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:35 / /mnt/blob rw,nosuid,nodev - fuse.blobfuse2 blobfuse2 rw,user_id=0
41 22 0:36 / /mnt/my\040bucket rw - fuse.s3fs s3fs rw
42 22 0:37 / /mnt/share rw - cifs //team.file.core.windows.net/data rw
43 22 0:38 / /mnt/office rw - cifs //files.example.org/data rw
44 22 0:39 / /mnt/nfs rw - nfs4 10.0.0.1:/export rw
45 40 8:2 / /mnt/blob/cache rw - xfs /dev/sdb rw
46 22 0:40 / /mnt/covered rw - fuse.rclone remote: rw
47 22 8:3 / /mnt/covered rw - ext4 /dev/sdc rw
"""


@pytest.mark.parametrize(
    ("path", "store"),
    [
        ("/mnt/blob", "Azure Blob Storage"),
        ("/mnt/blob/birds/2024", "Azure Blob Storage"),
        ("/mnt/blob/cache/birds", ""),
        ("/mnt/blobs", ""),
        ("/mnt/my bucket/birds", "an S3 bucket"),
        ("/mnt/share/birds", "a share of Azure Files"),
        ("/mnt/office/birds", ""),
        ("/mnt/nfs/birds", ""),
        ("/mnt/covered", ""),
    ],
)
def test_object_storage_that_is_mounted_is_told(path: str, store: str) -> None:
    sentence = slow_mount_sentence(path, MOUNTS)
    assert sentence.startswith(f"{path} is {store}, mounted as a file system: ") if store else sentence == ""


def test_the_disk_of_this_machine_is_none() -> None:
    assert slow_mount_sentence("/usr") == ""
