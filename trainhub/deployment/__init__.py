"""What `manage.py check --deploy` tells an operator: what was forgotten before others use the hub, and what
to do about it."""
