"""Which data sets are neighbours, and what becomes of the number of records."""

from opendp_bayes.mechanisms.neighbours import default_total, relation_of


def test_a_public_number_of_records_is_kept() -> None:
    assert (relation_of(0), default_total(0)) == ("change-one", "remainder")
    assert (relation_of(7), default_total(7)) == ("change-one", "remainder")


def test_a_private_number_of_records_changes() -> None:
    assert (relation_of(None), default_total(None)) == ("add/remove", "private")
