"""`OwnerFile`: a question chooses from a list, and everything else is the owner's."""

from typing import Any

import pytest

from opendp_bayes_office.files.reading import Reading
from opendp_bayes_office.report.field_errors import SpecificationError
from opendp_bayes_office.report.specification_text import read_owner_file, read_specification

OWNER = """\
path = "votes.csv"
separator = ";"
encoding = "latin-1"
epsilon_at_most = 1.0
rho_at_most = 0.5
delta_at_most = 1e-6
[privacy]
unit = "one voter"
contributions = 3
identifier = "voter"
most_rows_per_identifier = 4
[columns.vote]
categories = ["a", "b", "c"]
nulls = "c"
[columns.code]
categories = [1, 2]
[columns.member]
[ledger]
path = "votes.ledger"
total = { epsilon = 3.0 }
"""
PUBLIC = OWNER.replace(
    'identifier = "voter"\nmost_rows_per_identifier = 4\n', "size = 60\n"
).replace("contributions = 3", "contributions = 2")


def question(privacy: str = "epsilon = 1.0", rest: str = "", result: str = "") -> str:
    """A question of the votes, with more in its privacy, its columns or its result."""
    return (
        f'title = "Votes"\n[privacy]\n{privacy}\n{rest}\n[[results]]\ncolumn = "vote"\n{result}\n'
    )


def answered(text: str, owner: str = OWNER) -> Any:
    return read_specification(text, owner=read_owner_file(owner))


def test_questions_may_be_silent_repeat_or_narrow_what_the_owner_says() -> None:
    found = answered(question())
    assert (found.separator, found.encoding) == (";", "latin-1")
    privacy = found.privacy
    assert (privacy.unit, privacy.contributions) == ("one voter", 3)
    assert (privacy.identifier, privacy.rows_per_identifier) == ("voter", 4)
    assert privacy.size is None
    assert list(found.columns) == ["vote"]
    assert found.columns["vote"].categories == ["a", "b", "c"]
    assert found.columns["vote"].nulls == "c"
    public = answered(question(), PUBLIC).privacy
    assert (public.size, public.contributions, public.identifier) == (60, 2, None)
    same = 'separator = ";"\nencoding = "latin-1"\n' + question(
        'epsilon = 1.0\nunit = "one voter"\ncontributions = 3\nidentifier = "voter"',
        '[columns.vote]\ncategories = ["a", "b", "c"]\nnulls = "c"',
    )
    assert answered(same) == answered(question())
    asked = "rho = 0.1\ndelta = 1e-7\nrows_per_identifier = 2"
    column = '[columns.vote]\ncategories = ["c", "a"]\nunknown = "others"'
    found = answered(question(asked, column, 'mechanism = "laplace_parameters"\nprior = 2'))
    assert found.privacy.rows_per_identifier == 2
    assert found.columns["vote"].categories == ["c", "a"]
    assert found.columns["vote"].unknown == "others"
    assert found.results[0].prior == 2


@pytest.mark.parametrize(
    ("privacy", "rest", "result", "message"),
    [
        ("epsilon = 1.1", "", "", r"privacy\.epsilon=1\.1: must be at most 1\.0"),
        ("epsilon = 1e308", "", "", r"privacy\.epsilon=1e\+308: must be at most 1\.0"),
        ("rho = 0.6", "", "", r"privacy\.rho=0\.6: must be at most 0\.5"),
        ("rho = 0.1\ndelta = 0.9", "", "", r"privacy\.delta=0\.9: must be at most 1e-06"),
        ("epsilon = 1.0\nsize = 60", "", "", r"privacy\.size=60: .* leave it out"),
        ("epsilon = 1.0\ncontributions = 1", "", "", r"contributions=1: .* 3 as the own"),
        ('epsilon = 1.0\nidentifier = "x"', "", "", r"identifier='x': .* or write 'voter' as"),
        ('epsilon = 1.0\nunit = "no one"', "", "", r"unit='no one': is for the owner"),
        ("epsilon = 1.0\nrows_per_identifier = 5", "", "", r"rows_per_identifier=5: must be at mo"),
        ("epsilon = 1.0", '[columns.vote]\ncategories = ["a", "d"]', "", r"'d' is not among those"),
        ("epsilon = 1.0", '[columns.vote]\nnulls = "n"', "", r"vote\.nulls='n': is for the owner"),
        ("epsilon = 1.0", "[columns.age]", "", r"columns\.age='age': may not be asked"),
        ("epsilon = 1.0", '[columns.code]\ncategories = ["3"]', "", r"'3' is not among those"),
        ("epsilon = 1.0", "[columns.code]\ncategories = [true]", "", r"True is not among those"),
        ("epsilon = 1.0", "[columns.code]\nnulls = 1", "", r"code\.nulls=1: .* leave it out\."),
        ("epsilon = 1.0", '[columns.member]\ncategories = ["x"]', "", r"those of its type, as the"),
        ("epsilon = 1.0", "", 'by = "voter"', r"results\[0\]\.by='voter': may not be asked for"),
        ("epsilon = 1.0", "", 'mechanism = "hamming_exponential"', "may not be asked"),
    ],
)
def test_what_is_the_owners_is_refused(privacy: str, rest: str, result: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        answered(question(privacy, rest, result))


#: Every way of reading a file, with another that a question may try.
READ = {"separator": ('";"', '","'), "encoding": ('"latin-1"', '"cp437"')}
READ |= dict.fromkeys(("trim", "labels"), ("true", "false"))
READ |= {"null_values": ('["NA", -9]', '["NA"]')}
READ |= {"rows_above": ("1", "2"), "skip_rows": ("2", "3"), "sheet": ('"one"', '"two"')}


@pytest.mark.parametrize("field", Reading.__struct_fields__)
def test_every_way_of_reading_is_the_owners(field: str) -> None:
    own, other = READ[field]
    without = OWNER.replace('separator = ";"\nencoding = "latin-1"\n', "")
    owner = f"{field} = {own}\n{without}"
    silent = answered(question(), owner)
    assert getattr(silent, field) == getattr(read_owner_file(owner), field)
    assert answered(f"{field} = {own}\n{question()}", owner) == silent
    with pytest.raises(SpecificationError, match=f"{field}=.*: is for the owner"):
        answered(f"{field} = {other}\n{question()}", owner)
    with pytest.raises(SpecificationError, match=r"for the owner .* leave it out"):
        answered(f"{field} = {own}\n{question()}", without)


@pytest.mark.parametrize("nulls", ["c", "none"])
@pytest.mark.parametrize("chosen", [None, ["b"], ["c", "a"], "discover"])
def test_every_way_of_cleaning_a_column_is_the_owners(nulls: str, chosen: Any) -> None:
    """Spellings of what is counted, and of no value where that is a category, are all there."""
    recode = {"A": "a", "B": "b", "C": "c", "?": nulls}
    written = ", ".join(f"{value!r} = {label!r}" for value, label in recode.items())
    facts = f"null_values = ['-']\nrecode = {{ {written} }}\ndiscover = true\n"
    owner = OWNER.replace('nulls = "c"', f"nulls = {nulls!r}\n{facts}")
    owner = owner.replace("{ epsilon = 3.0 }", "{ epsilon = 3.0, delta = 1e-5 }")
    asked = "" if chosen is None else f"categories = {chosen!r}\n"

    def column(more: str = "") -> Any:
        rest = f"[columns.vote]\n{asked}{more}"
        return answered(question("epsilon = 1.0\ndelta = 1e-6", rest), owner).columns["vote"]

    found = column()
    everything = chosen in (None, "discover")
    counted = {*recode.values()} if everything else {*chosen, nulls}
    assert found.recode == {value: label for value, label in recode.items() if label in counted}
    assert (found.nulls, found.null_values) == (nulls, ["-"])
    assert column(f"nulls = {nulls!r}\nnull_values = ['-']") == found
    for other in ("null_values = ['--']", "nulls = 'd'", "recode = { D = 'a' }"):
        with pytest.raises(SpecificationError, match="is for the owner"):
            column(other)


def test_the_owner_allows_measures_and_plugins() -> None:
    pure = OWNER.replace("rho_at_most = 0.5\ndelta_at_most = 1e-6\n", "")
    assert answered(question(), pure).privacy.epsilon == 1.0
    for privacy, name in (("rho = 0.1", "rho"), ("epsilon = 0.1\ndelta = 1e-9", "delta")):
        with pytest.raises(SpecificationError, match=rf"privacy\.{name}=.*: must be left out, by"):
            answered(question(privacy), pure)
    with pytest.raises(SpecificationError, match="rows_per_identifier=1: must be left out"):
        answered(question("epsilon = 1.0\nrows_per_identifier = 1"), PUBLIC)
    named = OWNER.replace("epsilon_at_most", 'plugins = ["hamming_exponential"]\nepsilon_at_most')
    asked = question(result='mechanism = "hamming_exponential"')
    assert answered(asked, named).results[0].mechanism == "hamming_exponential"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('path = "votes.csv"', "", "path: is missing"),
        ("epsilon_at_most = 1.0\nrho_at_most = 0.5\n", "", r"must have epsilon_at_most or rho_at"),
        ("most_rows_per_identifier = 4\n", "", r"identifier and most_rows_per_identifier go"),
        ("[columns.member]", "[columns.voter]", r"columns\.voter: is the identifier"),
        ("{ epsilon = 3.0 }", "{ epsilon = -3.0 }", r"ledger\.total: .*of epsilon"),
        ("{ epsilon = 3.0 }", "{ epsilon = 3.0, rho = 1.0 }", r"ledger\.total: must be of epsil"),
        ("{ epsilon = 3.0 }", "{ eps = 3.0 }", r"ledger\.total\.eps: is not a field"),
        (
            '[privacy]\nunit = "one voter"\ncontributions = 3\nidentifier = "voter"\n'
            "most_rows_per_identifier = 4\n",
            "",
            r"privacy: is missing",
        ),
        ("total = { epsilon = 3.0 }", "", "ledger.total: is missing"),
        ("nulls = ", "null = ", r"columns\.vote\.null: is not a field"),
    ],
)
def test_an_owners_file_says_what_is_wrong_with_it(old: str, new: str, message: str) -> None:
    assert old in OWNER
    with pytest.raises(SpecificationError, match=message):
        read_owner_file(OWNER.replace(old, new, 1))
