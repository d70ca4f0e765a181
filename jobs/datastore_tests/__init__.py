"""Tests of datastores from the hub and from nodes: begun, canceled and shown, on pages and by the API."""
