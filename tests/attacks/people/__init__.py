"""Attacks on sign-in, on people and their workspaces, on tokens, and by webhooks."""
