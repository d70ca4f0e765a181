from __future__ import annotations

# What a node is to do with a datastore: test whether it can read it, or list its files.
TEST, LIST = "test", "list"
# What only the hub does: read one file, for somebody who downloads it.
READ = "read"
# What the process that reads stores does besides (see store_work).
SIGN = "sign"
