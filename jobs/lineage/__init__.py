"""From which data runs learned."""
