"""Who may call what: every route of the hub held against every kind of caller (routes.txt)."""
