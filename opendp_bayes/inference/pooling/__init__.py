"""Posteriors of groups that borrow strength from each other."""
