"""Attacks on TrainHub: each finding of a security review, tried again, and each defence that held, kept
so."""
