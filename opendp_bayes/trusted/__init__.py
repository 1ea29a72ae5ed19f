"""The room that must be right for the guarantee: it alone touches data and debits budgets."""
