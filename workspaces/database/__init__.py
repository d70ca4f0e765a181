"""The state of the database as the hub's processes meet it."""
