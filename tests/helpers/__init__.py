"""Definitions, brute force, random cases and releases that several tests compare with."""
