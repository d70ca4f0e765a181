"""Registered models: registering, listing, reading and changing them."""
