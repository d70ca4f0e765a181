"""What nodes download for their orders, with a ticket of each order that opens nothing else."""
