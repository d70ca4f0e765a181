"""The template tag for the navigation of every page."""

from __future__ import annotations

from django import template

from jobs.display.navigation import navigation_entries

register = template.Library()
register.simple_tag(navigation_entries, name="rail")
