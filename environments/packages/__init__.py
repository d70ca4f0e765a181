"""The files of locked packages: which wheels and packages of conda a lock names, and their bytes, which the
hub fetches once and keeps."""
