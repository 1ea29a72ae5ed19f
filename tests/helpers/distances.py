"""Distances of counts for tests."""

from opendp_bayes.mechanisms.neighbours import Distance


def moved_by(records: int, moved: str) -> Distance:
    """That of people, each counted once in so many keys, or of so many records in any keys."""
    return Distance.limited(records, 1) if moved == "people" else Distance.of(records)
