"""`python -m datastores.store_reader`: see trainhub_launch.data.store_work."""

from __future__ import annotations

import obstore
import obstore.exceptions
import obstore.store

from trainhub_launch.data.store_work import carry_out

if __name__ == "__main__":
    carry_out(obstore)
