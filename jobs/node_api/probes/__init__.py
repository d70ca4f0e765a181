"""Claims, secrets and reports of orders about datastores."""
