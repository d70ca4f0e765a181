"""Specs in the formats of other launchers, by the API and on pages."""
