"""The Triton that judges, as text: its names from the package itself, tutorials and practices from elsewhere."""
