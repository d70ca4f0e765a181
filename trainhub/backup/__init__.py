"""Backup of a hub into a folder, and its restoration on another machine.

    FOLDER/backup.lock               held while a backup is made
    FOLDER/blobs/ab/ab12…            content-addressed files, shared by all backups in FOLDER
    FOLDER/2026-11-29T201500Z/       one backup
        manifest.json                written last: without it the backup does not count
        files.jsonl                  path, size and SHA-256 of every file, one line each
        database.sqlite3             or database.dump, of PostgreSQL
        files/…                      logs and others, as below DATA_DIR

Keys never lie in FOLDER: `--with-keys` writes them to a folder of their own."""
