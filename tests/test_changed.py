"""`make test-changed` runs the tests of changed rooms and of those above them."""

from tests.helpers.changed import TOGETHER, layers, places_for


def test_rooms_above_a_changed_one_are_tested_with_pages_and_plugins() -> None:
    found = places_for(["opendp_bayes/inference/combine.py"])
    assert {"tests/inference", "tests/results", "opendp_bayes/queries"} < set(found)
    assert not {"tests/trusted", "tests/display", "tests/mathematics"} & set(found)
    assert {*TOGETHER, "plugins"} < set(found)
    found = places_for([f"opendp_bayes/{layers()[-1][0]}/rounding.py"])
    assert {"tests/mathematics", "tests/trusted", "plugins"} < set(found)
    for file in ("pyproject.toml", "tests/helpers/oracles.py", "opendp_bayes/__init__.py"):
        assert places_for(["docs/levels.md", file])[0] == "tests"
    assert places_for([]) == []
    assert places_for(["docs/levels.md"]) == ["docs/levels.md"]
    assert places_for(["tests/test_classes.py"]) == ["tests/test_classes.py"]
    assert places_for(["plugins/opendp-bayes-smoothed/README.md"]) == [
        "plugins/opendp-bayes-smoothed/README.md"
    ]
    assert places_for(["plugins/opendp-bayes-smoothed/opendp_bayes_smoothed/draws.py"]) == [
        "plugins/opendp-bayes-smoothed"
    ]
    office = "plugins/opendp-bayes-office"
    assert places_for([f"{office}/opendp_bayes_office/commands/app.py"]) == [office, *TOGETHER]
