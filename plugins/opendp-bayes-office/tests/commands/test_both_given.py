"""Options and fields of which two say the same thing, or go with each other, given at once."""

from pathlib import Path

import pytest

import opendp_bayes as ob
from tests.helpers.command_line import run

SPECIFICATION = """\
title = "Votes"
[privacy]
epsilon = 2.0
{privacy}
[columns.vote]
categories = ["a", "b"]
[columns.town]
categories = ["x", "y"]
[[results]]
column = "vote"
mechanism = "laplace_parameters"
[[results]]
column = ["vote", "town"]
mechanism = "laplace_parameters"
"""


@pytest.mark.parametrize(
    ("privacy", "d_in"),
    [
        ("contributions = 3", 3),
        ('contributions = 3\nidentifier = "who"\nrows_per_identifier = 2', 6),
        ("contributions = 3\nsize = 60", 3),
    ],
)
def test_a_person_of_several_rows_in_every_unit(privacy: str, d_in: int, sixty_votes: Path) -> None:
    rows = [f"{'aab'[i % 3]},{'xy'[i % 2]},{i % 20}" for i in range(60)]
    Path("votes.csv").write_text("\n".join(["vote,town,who", *rows, ""]))
    sized = 'nulls = "b"\nunknown = "b"\n' if "size" in privacy else ""
    text = SPECIFICATION.replace('["a", "b"]\n', f'["a", "b"]\n{sized}')
    text = text.replace('["x", "y"]\n', f'["x", "y"]\n{sized.replace("b", "y")}')
    Path("votes.toml").write_text(text.format(privacy=privacy))
    run("run", "votes.toml", "votes.csv", "-o", "made.json")
    survey = ob.Survey.from_json(Path("made.json").read_bytes())
    assert [release.d_in for release in survey.values()] == [d_in, d_in]
    assert survey.loss.epsilon <= 2
    options = {
        3: ["--contributions", 3, *(["--size", 60, "--nulls", "b"] if sized else [])],
        6: ["--contributions", 3, "--identifier", "who", "--rows-per-identifier", 2],
    }[d_in]
    of_vote = ["--column", "vote", "--categories", "a,b", "--epsilon", 2, "--unknown", "b"]
    made = run("release", "votes.csv", *of_vote, *options, "-o", "-")
    release = ob.Release.from_json(made)
    assert (release.d_in, release.epsilon) == (d_in, pytest.approx(2))
