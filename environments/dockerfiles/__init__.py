"""Dockerfiles as environments: what they may contain, how one is written from a base image and packages, and
the image that a node has built from one."""
