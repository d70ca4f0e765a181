"""Tests of datastores, from the hub and from nodes."""
