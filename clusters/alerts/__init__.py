"""What deserves somebody's attention: found in what the nodes tell, held until it is over, told once."""
