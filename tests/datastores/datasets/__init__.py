"""Datasets: their lists of files, and what runs get of them."""
