"""What a process of a run finds: its environment variables, and the launcher in the user's command."""
