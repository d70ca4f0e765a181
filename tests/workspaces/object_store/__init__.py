"""Stored files in an S3-compatible store."""
