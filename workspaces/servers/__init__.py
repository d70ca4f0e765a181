"""Several web servers and workers on one database: which of them live, which of them answers for a node, how
they reach each other, and what only one of them does at a time.

A hub on SQLite is one server by definition: it registers nothing and asks nobody."""
