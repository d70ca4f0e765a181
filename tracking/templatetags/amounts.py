"""Filters that format amounts of usage."""

from __future__ import annotations

from django import template

from tracking.amounts import energy, hours

register = template.Library()
register.filter("hours", hours)
register.filter("energy", energy)
