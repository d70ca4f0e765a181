"""`manage.py migrate-to-postgresql`: a hub's SQLite database in an empty PostgreSQL.

What is done is recorded in tables of the target (`move_record`), in the same transactions as the rows, so
that a move which was interrupted goes on. They are removed last: a hub does not start on a database that has
them."""
