"""The files of locked packages: which wheels a lock names, and their bytes, which the hub fetches once and
keeps."""
