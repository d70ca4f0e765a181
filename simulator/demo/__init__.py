"""A fleet that is not there, and people who train on it: `manage.py up --demo` (trainhub/up/demo.py starts
it)."""
