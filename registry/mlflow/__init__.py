"""MLflow's model registry protocol, for its unmodified client (docs/models.md)."""
