"""What other workspaces and people cost each page of a workspace."""
