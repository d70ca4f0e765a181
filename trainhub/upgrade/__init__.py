"""Upgrades: which versions work with a database, what a migration means for the version before, and what
`manage.py upgrade --check` says."""
