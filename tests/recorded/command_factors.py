"""What a command line of the office can ask for, in which file, and the rules by which it is
refused: factors of a covering array, as in `factors`.
"""

from collections.abc import Callable
from typing import get_args

from opendp_bayes_office.commands.app import app
from opendp_bayes_office.files.files import EXTENSIONS
from opendp_bayes_office.files.tables import LABELLED, WORKBOOK
from opendp_bayes_office.report.language import Tag
from tests.helpers.covering_array import NOTHING, Factors, Rule, needs

_NAMES = [command.callback.__name__ for command in app.registered_commands if command.callback]
#: Those that follow on another one, and the one that has no data but a public survey.
FOLLOWING = ["show", "ledger", "demo"]
COMMANDS = [name for name in _NAMES if name not in FOLLOWING]
SPECIFIED, ASKING = ["report", "run"], ["release", "report", "run"]
READING = [*ASKING, "init"]
#: By kind of file what its name ends with; "-" is standard input, and "" a folder. Nothing that can
#: be installed writes .sas7bdat.
ENDINGS = {
    kind: [end for end in EXTENSIONS if EXTENSIONS[end] == kind and end != ".sas7bdat"]
    for kind in dict.fromkeys(EXTENSIONS.values())
}
ENDINGS["CSV"].append("-")
ENDINGS["Parquet"].append("")
TYPED = ["Parquet", "Arrow"]
GROUPS, SEVERAL = ["by", "groups", "pooled"], ["merged", "survey", "together"]
LISTED = ["alone", "joint", *GROUPS, *SEVERAL]
PUBLIC, PEOPLE = ["public", "public, 2"], ["identifier", "identifiers"]
PRIVATE = ["one", "two", *PEOPLE]
ROWS = ["none", "a category", "new", "DROP"]

LEVELS: dict[str, list[str]] = {"command": COMMANDS}
RULES: list[Rule] = []


def _of(commands: list[str], among: list[str] | None = None, /, **levels: list[str]) -> None:
    """Factors of these commands alone, and of what is asked."""
    for name, of in levels.items():
        LEVELS[name] = of if commands == COMMANDS else [NOTHING, *of]

        def holds(command: str, level: str, question: str = "") -> bool:
            return (level != NOTHING) == (command in commands and question in (among or [question]))

        if commands != COMMANDS:
            RULES.append(Rule(holds, "command", name, *([] if among is None else ["asked"])))


def _wrong(**levels: str) -> None:
    """A level that no case may have."""
    for name, wrong in levels.items():
        LEVELS[name].append(wrong)
        RULES.append(Rule(lambda level, wrong=wrong: level != wrong, name, refused=True))


def _where(factor: str, levels: str | list[str], *, refused: bool = False, **of: list[str]) -> None:
    """Other factors that the case has a use for have these levels, where one has one of some."""
    RULES.extend(needs(factor, levels, {n: [NOTHING, *good] for n, good in of.items()}, refused))


def _all(holds: Callable[..., bool], refused: bool = False) -> None:
    RULES.append(Rule(holds, refused=refused))


def _but(factor: str, *levels: str) -> list[str]:
    """All other levels of a factor."""
    return [level for level in LEVELS[factor] if level not in levels]


_of(COMMANDS, budget=["epsilon", "epsilon, delta", "rho", "rho, delta"])
_of([*ASKING, "plan"], unit=[*PRIVATE, *PUBLIC], prior=["number", "list", "auto", "learned"])
# --- Files
_of(
    READING,
    file=list(ENDINGS),
    ending=["0", "1", "2", "3", "4"],
    kind=["text", "whole", "decimal", "date", "Boolean", "Enum"],
    values=["plain", "blanks", "quotes"],
    lines=["plain", "untidy", "CRLF", "CR", "errors"],
    separator=["usual", ";", "|", "tab"],
    encoding=["usual", "mark", "latin-1", "utf-16"],
    rows_above=["0", "2"],
    skip_rows=["0", "1"],
    sheet=["only", "named"],
    owner=["no", "in short", "repeated"],
    ledger=["none", "epsilon", "rho", "of two"],
    categories=["listed", "reversed", "fewer", "of the file", "by label"],
)
_of(["init"], header=["no", "yes"])
# --- Cleaning, and what is asked. The office hands names of mechanisms on: one of each kind.
_of(
    ASKING,
    asked=[*LISTED, "discovered"],
    trim=["no", "yes"],
    null_values=["none", "file", "column", "both"],
    recode=["none", "a category", "new"],
    labels=["no", "yes"],
    nulls=ROWS,
    unknown=ROWS,
    output=["file", "usual", "printed", "synthetic"],
    foreseen=["no", "yes", "without data"],
    guess=["no", "yes"],
    mechanism=[
        "auto",
        "laplace_parameters",
        "gaussian_parameters",
        "knorm_parameters",
        "optimal_threshold",
    ],
)
_of(ASKING, ["joint", *GROUPS, *SEVERAL], others=ROWS)
_of(ASKING, LISTED, ordered=["no", "yes"])
_of(ASKING, ["discovered"], always=["none", "some"], rest=["no", "yes"])
_of(SPECIFIED, SEVERAL, share=["equal", "other"])
_of(
    SPECIFIED,
    written=["toml", "json", "stdin"],
    language=list(get_args(Tag)),
    among=["answered", "all"],
    texts=["no", "yes"],
    names=["no", "yes"],
)
# --- What follows, and plans
_of(
    READING, shown=["table", "xlsx", "json"], level=["usual", "0.5"], page=["usual", *get_args(Tag)]
)
_of(["plan"], proportions=["no", "yes"])
_wrong(budget="none", sheet="another", output="there", page="Latin", ledger="little", ending="x")
_wrong(level="2", shown="png", written="not", trim="value")

# --- Files that can be written, and options that are for some
_where("kind", "Enum", file=TYPED)
_where("kind", "Boolean", file=["CSV", WORKBOOK, *TYPED])
_where("kind", "Boolean", null_values=["none", "file"])
_where("values", "quotes", kind=["text", "Enum"])
_where("lines", ["untidy", "CRLF", "CR", "errors"], file=["CSV", WORKBOOK])
_where("lines", "errors", file=[WORKBOOK])
_where("file", WORKBOOK, lines=["plain", "untidy", "errors"])
_where("encoding", ["mark", "utf-16"], file=["CSV"])
_where("file", TYPED, encoding=["usual"])
_where("file", TYPED, kind=_but("kind", "decimal"), refused=True)
_where("file", WORKBOOK, encoding=["usual"], refused=True)
_where("file", _but("file", "CSV"), separator=["usual"], refused=True)
_where("file", _but("file", "CSV", WORKBOOK), rows_above=["0"], skip_rows=["0"], refused=True)
_where("file", _but("file", WORKBOOK), sheet=["only"], refused=True)
_where("file", _but("file", *LABELLED), labels=["no"], refused=True)
_all(lambda file, ending: ending in (NOTHING, "x") or int(ending) < len(ENDINGS.get(file, "")))
_all(  # there is one standard input, and none for an owner's file
    lambda file, ending, owner, written: (
        (file, ending) != ("CSV", "4") or (owner == "no" and written != "stdin")
    )
)
# --- Commands, owners and ledgers
_where("command", "init", budget=["epsilon"], skip_rows=["0"], owner=["no", "in short"])
_where("command", "plan", unit=["one", "two", *PUBLIC], prior=["number", "list"])
_where("command", "plan", budget=_but("budget", "rho, delta"), refused=True)
_where("command", "release", asked=["alone", "by", "groups", "discovered"])
_where("command", ["release", "run"], output=["file", "usual", "printed", "there"])
_where("command", "report", output=["file", "usual", "synthetic", "there"])
_where("command", "release", foreseen=["no", "yes"])
_where("owner", ["in short", "repeated"], ledger=["none"], refused=True)
_where("ledger", "epsilon", budget=["epsilon", "epsilon, delta"], refused=True)
_where("foreseen", "without data", owner=["no"], ledger=["none"])
_where("foreseen", "without data", categories=_but("categories", "of the file"), refused=True)
for _name in ("trim", "null_values", "recode", "labels"):
    RULES.append(
        Rule(  # what only a specification or an owner's file states
            lambda command, owner, level: (
                (command, owner) != ("release", "no") or level in ("no", "none")
            ),
            "command",
            "owner",
            _name,
        )
    )
_all(lambda command, asked, nulls: (command, asked) != ("release", "groups") or nulls == "none")
_all(lambda command, asked, unknown: (command, asked) != ("release", "groups") or unknown == "none")
_all(lambda command, asked, others: (command, asked) != ("release", "by") or others == "none")
# --- Discovered categories
_where("asked", "discovered", recode=["none", "new"], categories=["listed"])
_where("asked", "discovered", mechanism=["auto", "optimal_threshold"])
_where("asked", LISTED, mechanism=_but("mechanism", "optimal_threshold"))
_where(
    "asked",
    "discovered",
    budget=["epsilon, delta", "rho, delta"],
    unit=PRIVATE,
    unknown=["none"],
    names=["no"],
    prior=["auto"],
    refused=True,
)
_where("mechanism", "optimal_threshold", budget=["epsilon, delta"], refused=True)
# --- Listed ones, and where other values are counted
_where("categories", "of the file", names=["no"], recode=["none"], refused=True)
_where("categories", "by label", kind=["whole"], file=list(LABELLED))
_all(
    lambda categories, kind, file: (
        categories != "of the file"
        or kind == "Enum"
        or (kind == "Boolean" and file in TYPED)
        or (kind == "whole" and file in LABELLED)
    ),
    refused=True,
)
_all(
    lambda command, owner, categories, labels, kind: (
        command in ("plan", "init")
        or (command, owner) == ("release", "no")
        or categories not in ("of the file", "by label")
        or kind != "whole"
        or labels == "yes"
    )
)
_all(
    lambda kind, recode, categories: (
        kind != "Boolean"
        or recode in ("none", NOTHING)
        or (recode == "a category" and categories == "fewer")
    )
)
_all(
    lambda kind, categories, unknown: (
        kind != "Boolean" or categories != "fewer" or unknown in (NOTHING, "none", "new")
    )
)
_where("recode", "new", nulls=["new"])
_where("unit", PUBLIC, asked=[*_but("asked", "groups", "discovered")])
_where("unit", PUBLIC, nulls=["a category", "new"], unknown=_but("unknown", "DROP"), refused=True)
_all(
    lambda unit, others, asked: (
        unit not in PUBLIC or others in (NOTHING, "a category", "new") or asked in ("by", "pooled")
    )
)
_where(
    "asked",
    "together",
    nulls=["a category", "new"],
    others=["a category", "new"],
    unknown=_but("unknown", "DROP"),
    refused=True,
)
# --- Priors, mechanisms and results
_where("asked", ["pooled", "together"], prior=["auto"], refused=True)
_where("asked", GROUPS, prior=_but("prior", "learned"), ordered=["no"], refused=True)
_where("prior", "list", asked=["alone"], categories=["listed"])
_where("ordered", "yes", prior=["auto", "learned"], refused=True)
_where("mechanism", "knorm_parameters", unit=PUBLIC, refused=True)
_where("mechanism", "gaussian_parameters", budget=_but("budget", "epsilon"), refused=True)
_where(
    "output",
    "synthetic",
    asked=["alone", "joint", "together"],
    prior=["auto"],
    ordered=["no"],
    nulls=["a category", "new"],
    others=["a category", "new"],
    unknown=_but("unknown", "DROP"),
    mechanism=["auto", "laplace_parameters", "gaussian_parameters"],
)
_all(
    lambda guess, unit, foreseen: guess != "yes" or unit not in PUBLIC or foreseen == "no",
    refused=True,
)
FACTORS = Factors(LEVELS, RULES)
