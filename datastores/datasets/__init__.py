"""Datasets: which files a datastore had at a time, listed by the hub, so that runs read exactly those."""
