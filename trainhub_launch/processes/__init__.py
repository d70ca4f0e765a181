"""The environment variables of a run's processes, and the launcher in the user's command."""
