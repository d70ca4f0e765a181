"""Security headers and cookies of all answers, and the address at which browsers reach the hub."""
