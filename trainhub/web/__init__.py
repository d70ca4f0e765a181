"""What browsers are told about every answer, and under which address they reach the hub."""
