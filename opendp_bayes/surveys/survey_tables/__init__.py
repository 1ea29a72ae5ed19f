"""One posterior for all tables of the same records, also where they overlap."""
