"""What every mechanism costs and is worth in a public setting, before any budget is spent."""
