"""Counts at several levels at once: whole tables whose categories are sums of those of others."""
