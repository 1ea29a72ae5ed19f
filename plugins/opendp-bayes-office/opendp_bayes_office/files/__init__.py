"""Files with data: their columns, and their records, one line a record."""
