"""The S3-compatible store of BLOB_STORE, in which the hub keeps its stored files, and the rows that say what
lies there. Without that setting nothing here is used."""
