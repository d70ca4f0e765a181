"""Telemetry: metric values over time are received, packed, folded into longer steps by age, and read."""
