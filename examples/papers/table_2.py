"""Table 2 of the tailoring paper: Table 1 for balanced data, t records to either side; n = 100."""

from table_1 import table

if __name__ == "__main__":
    table("table_2", 50, both_sides=True)
