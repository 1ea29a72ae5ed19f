"""A stranger's question keeps to what the owner allows, and failures after reading are paid."""

import json
from pathlib import Path
from typing import Any

import pytest

import opendp_bayes as ob
from opendp_bayes.trusted.ledger import read_accounts
from tests.helpers.command_line import run

OWNER = """\
path = "votes.csv"
epsilon_at_most = 20000.0
[privacy]
[columns.vote]
categories = ["a", "b"]
nulls = "b"
[columns.town]
categories = ["x", "y"]
[ledger]
path = "votes.ledger"
total = { epsilon = 30000.0 }
"""


@pytest.fixture
def owner(sixty_votes: Path, _plain_terminal: None) -> Path:
    """A working directory with data, their owner's file and nothing else."""
    Path("data.toml").write_text(OWNER)
    return sixty_votes


def asked(*, top: str = "", privacy: str = "", result: str = "") -> str:
    """A question of the votes, in a file."""
    Path("question.toml").write_text(
        f'title = "Votes"\n{top}\n[privacy]\nepsilon = 15000.0\n{privacy}\n'
        f'[[results]]\ncolumn = "vote"\n{result}\n'
    )
    return "question.toml"


def spent() -> tuple[int, float]:
    """How many releases have failed, and what all have spent."""
    account = read_accounts(Path("votes.ledger"))["votes"]
    return account.failures, account.spent.value


def test_a_question_is_answered_and_debited_once(owner: Path) -> None:
    release = ob.Release.from_json(run("run", asked(), "data.toml", "-o", "-"))
    assert (release.categories, release.counts) == (("a", "b", "other"), (40, 20, 0))
    run("run", asked(), "data.toml", "-o", "-")
    message = run("run", asked(), "data.toml", code=2)
    assert "the ledger has left for 'votes'" in message
    account = read_accounts(Path("votes.ledger"))["votes"]
    assert (account.unit, account.failures) == ("contributions: 1", 0)


@pytest.mark.parametrize(
    "more",
    [
        *({"top": of} for of in ('encoding = "ascii"', 'separator = ";"')),
        *({"privacy": of} for of in ("size = 60", "size = 61", "contributions = 2")),
        {"privacy": 'identifier = "town"\nrows_per_identifier = 1'},
        *({"result": of} for of in ('by = "secret"', 'mechanism = "hamming_exponential"')),
    ],
)
def test_a_question_that_states_a_fact_of_the_data_is_refused_unread(owner, more):
    """Nothing is read: the file with the data is not even there."""
    Path("votes.csv").unlink()
    message = run("run", asked(**more), "data.toml", code=2)
    assert "owner of the data" in message
    assert not Path("votes.ledger").exists()


def test_the_size_is_an_oracle_where_the_caller_owns_the_data(owner: Path) -> None:
    """Negative control: of a bare file the question tells for nothing whether there are 60."""
    column = '[columns.vote]\ncategories = ["a", "b"]\nnulls = "a"\nunknown = "a"'
    for size, code in ((60, 0), (61, 1)):
        run("run", asked(privacy=f"size = {size}\n{column}"), "votes.csv", "-o", "-", code=code)


def test_the_unit_of_the_ledger_is_the_owners(owner: Path) -> None:
    ledger = ob.Ledger("votes.ledger", dataset="votes", epsilon=30000.0)
    assert ledger.account.unit is None
    run("run", asked(), "data.toml", "-o", "-")
    assert ledger.account.unit == "contributions: 1"
    Path("data.toml").write_text(OWNER.replace("[privacy]", "[privacy]\ncontributions = 2"))
    message = run("run", asked(), "data.toml", code=2)
    assert "the ledger's losses of 'votes'" in message


def test_the_total_of_the_ledger_is_the_owners(owner: Path) -> None:
    run("ledger", "votes.ledger", "--dataset", "votes", "--epsilon", 40000)
    message = run("run", asked(), "data.toml", code=2)
    assert "epsilon=30000.0: the total of 'votes'" in message
    message = run("run", asked(), "data.toml", "--ledger", "votes.ledger", code=2)
    assert "--ledger votes.ledger: is for the owner" in message


def test_what_fails_after_data_were_read_is_paid_for(owner: Path) -> None:
    """An owner who is wrong about the number of records, or about the text."""
    wrong = OWNER.replace("[privacy]", "[privacy]\nsize = 61").replace("30000", "50000")
    Path("data.toml").write_text(wrong)
    message = run("run", asked(result="prior = 1"), "data.toml", code=1)
    assert "the public number that was declared" in message
    assert "so this counts as spent" not in message, "the release says it"
    assert spent() == (1, pytest.approx(15000, rel=0.01))
    assert "and used their budget: 1." in run("ledger", "votes.ledger")
    Path("votes.csv").write_bytes(b"vote,town\na,x\n\xff,y\n")
    message = run("run", asked(), "data.toml", code=2)
    assert "counts as spent: ε = 15000." in message
    assert spent() == (2, pytest.approx(30000, rel=0.01))
    run("release", "data.toml", "--column", "vote", "--epsilon", 1, code=2)
    assert spent() == (3, pytest.approx(30001, rel=0.01))
    run("report", asked(), "data.toml", "-o", "page.html", code=2)
    assert spent() == (4, pytest.approx(45001, rel=0.01))
    message = run("run", asked(), "data.toml", code=2)
    assert "would exceed what the ledger has left" in message
    assert spent() == (4, pytest.approx(45001, rel=0.01))


def test_what_is_refused_before_records_are_read_costs_nothing(owner: Path) -> None:
    Path("votes.csv").write_text("town\nx\n")
    assert "vote" in run("run", asked(), "data.toml", code=2)
    assert spent() == (0, 0.0)
    (entry,) = read_accounts(Path("votes.ledger"))["votes"].entries[1:]
    assert entry.state == "refused"
    assert "not spent" in run("ledger", "votes.ledger")


def test_what_crashes_a_reader_is_spent(owner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a dry run, once there is a ledger: an intent is there before data are opened."""
    from opendp_bayes_office.files import files

    run("run", asked(), "data.toml", "-o", "-")
    header_of, states = files.header_of, []

    def header(text: Any) -> Any:
        states.append(read_accounts(Path("votes.ledger"))["votes"].entries[-1].state)
        return header_of(text)

    monkeypatch.setattr(files, "header_of", header)
    run("run", asked(), "data.toml", "--dry-run")
    assert spent() == (0, pytest.approx(15000, rel=0.01))
    run("run", asked(), "data.toml", "-o", "-")
    assert states == ["open", "open"]


def test_a_dry_run_makes_no_ledger(owner: Path) -> None:
    assert "Nothing was spent" in " ".join(run("run", asked(), "data.toml", "--dry-run").split())
    assert not Path("votes.ledger").exists()


def test_every_command_reads_the_same_file(owner: Path) -> None:
    given = "--column", "vote", "--epsilon", 1000, "-o", "-"
    release = ob.Release.from_json(run("release", "data.toml", *given))
    assert (release.categories, release.counts) == (("a", "b", "other"), (40, 20, 0))
    grouped = json.loads(run("release", "data.toml", *given, "--by", "town"))
    assert grouped["groups"] == ["x", "y"]
    some = ob.Release.from_json(run("release", "data.toml", *given, "--categories", "b"))
    assert (some.categories, some.counts) == (("b", "other"), (20, 40))
    for more, message in (
        (("--size", 60), "privacy.size=60: is for the owner"),
        (("--nulls", "a"), "columns.vote.nulls='a': is for the owner"),
        (("--categories", "a,c"), "columns.vote.categories: 'c' is not among those"),
        (("--contributions", 2), "privacy.contributions=2: is for the owner"),
        (("--separator", ";"), "separator=';': is for the owner"),
        (("--mechanism", "hamming_exponential"), "may not be asked for"),
    ):
        assert message in run("release", "data.toml", *given, *more, code=2)
    run("report", asked(), "data.toml", "-o", "page.html")
    assert read_accounts(Path("votes.ledger"))["votes"].spent.epsilon == pytest.approx(18000)


def test_init_writes_both_files_and_they_run(owner: Path) -> None:
    given = "--categories", "vote=a,b", "--epsilon", 2, "--owner", "facts.toml", "-o", "q.toml"
    run("init", "votes.csv", *given)
    release = ob.Release.from_json(run("run", "q.toml", "facts.toml", "-o", "-"))
    assert release.categories == ("a", "b", "other")
    assert read_accounts(Path("votes.ledger"))["votes"].total.epsilon == 2
    assert "size" not in Path("q.toml").read_text()
    assert "exists already" in run("init", "votes.csv", *given, code=2)
    assert "--owner: needs a file" in run("init", "-", "--header", "--owner", "x.toml", code=2)
