"""Texts for runs and for the navigation, shared by views, template tags and exports."""
