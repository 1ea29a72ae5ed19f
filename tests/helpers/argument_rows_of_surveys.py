"""Arguments of the methods of a survey's posterior and of its tables."""

import itertools
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

import opendp_bayes as ob
from opendp_bayes.surveys.joint_posterior import survey_posterior
from opendp_bayes.surveys.survey_tables.survey_posterior import SurveyPosterior
from opendp_bayes.surveys.survey_tables.table_posterior import TablePosterior
from tests.helpers.argument_rows import DIFFERENT, LARGER, of_methods, rows, vary
from tests.helpers.argument_rows_of_posteriors import first_mean, first_width, of_variables
from tests.helpers.releases import guarantee

NAMES, LABELS = ("x", "y"), ("a", "b")
CELLS = tuple(itertools.product(LABELS, LABELS))
DRAWN = (50, 10, 20, 30)
RELEASE = ob.Release(DRAWN, CELLS, (1.0,) * 4, ob.GaussianParameters(2.0), guarantee(110), NAMES)
SURVEY = survey_posterior({"x and y": RELEASE}, ess=10)
TABLE = SURVEY.marginal("x", "y")
#: Tables of which one is the sum of the other.
_OF_LEVELS: tuple[Any, ...] = (ob.LaplaceParameters(2.0, total="private"), guarantee(None))
_FINE: Any = ((9, 4, 7, 5), ("a", "b", "c", "d"), (1.0,) * 4, *_OF_LEVELS)
_COARSE: Any = ((12, 13), ("ab", "cd"), (1.0,) * 2, *_OF_LEVELS)
_PARTS = ("a", "b"), ("c", "d")
NESTED = {"fine": ob.Release(*_FINE, columns=("v",))}
NESTED["coarse"] = ob.Release(*_COARSE, parts=_PARTS, columns=("v",))
#: A survey with a pair that no table has.
_OF_TWO: Any = (LABELS, (1.0,) * 2, ob.GaussianParameters(2.0), guarantee(110))
_SINGLE = {"x": ob.Release((60, 50), *_OF_TWO), "y": ob.Release((70, 40), *_OF_TWO)}
OPEN = survey_posterior(_SINGLE, ess=10)
FOLDER = TemporaryDirectory()


def into_empty_folder(method: Any) -> Any:
    """The method after what an earlier call wrote has gone."""

    def function(**given: Any) -> Any:
        for path in Path(given["folder"]).glob("*.*"):
            path.unlink()
        return method(**given)

    function.__qualname__ = method.__qualname__
    return function


def of_copies(frames: list[Any]) -> list[Any]:
    return [frame.rows() for frame in frames]


def of_files(paths: list[Any]) -> list[Any]:
    read = {".csv": pl.read_csv, ".parquet": pl.read_parquet}
    return [read[path.suffix](path).rows() for path in paths]


#: Of both ways to make copies.
COPIES = (
    vary("copies", 3, LARGER, len),
    vary("kind", "predictive", DIFFERENT),
    vary("records", 200, LARGER, lambda made: made[0].height, kind="predictive"),
    vary("random_state", 1, DIFFERENT),
)

CORNERS = {"first": ("a", "a"), "second": ("b", "b")}
TOWARDS_EACH_OTHER = {"larger": {"second": ("a", "b")}, "smaller": {"first": ("a", "b")}}


def mean_of(found: Any) -> float:
    return found.mean()


def first_value_of(found: Any) -> float:
    return next(iter(found.values())).value.mean()


def as_files(base: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of copies in files: of their number of records, for those that vary it."""
    number = (lambda made: len(of_files(made)[0]),)
    return (*base[:3], *number, *base[4:]) if base[0] == "records" else base


ANOTHER = f"{FOLDER.name}/other"
OF_FILES = (
    vary("folder", ANOTHER, DIFFERENT, lambda made: str(made[0])),
    vary("format", "csv", DIFFERENT, lambda made: made[0].suffix),
)
OF_X: dict[str, Any] = {"variables": ["x"]}
OF_Y: dict[str, Any] = {"variables": ["y"]}
EDGES, WIDER = {"edges": [0, 1, 2]}, {"edges": [0, 2, 4]}
MADE: dict[str, Any] = {"self": SURVEY, "copies": 2, "random_state": 0}
SHARE: dict[str, Any] = {"larger": {"of": "counts"}, "smaller": {"function": lambda p: p["a", "b"]}}
SURVEYS = [
    *rows(
        *(ob.combine_tables, {"tables": NESTED, "draws_may_agree": True}),
        lambda posterior: posterior["coarse"].mean()[0],
        refused={"draws_may_agree": 3},
        smaller={"tables": {**NESTED, "coarse": replace(NESTED["coarse"], noisy_counts=(3, 22))}},
    ),
    *(
        row
        for kind, value in ((SurveyPosterior, SURVEY), (TablePosterior, TABLE))
        for base in [{"self": value, **OF_X}]
        for method, of, then in (
            (kind.marginal, base, {"larger": OF_Y}),
            (kind.conditional, {**base, "y": "a"}, {"refused": OF_Y}),
        )
        for row in rows(of_variables(method), of, first_mean, **then)
    ),
    *rows(
        *(SurveyPosterior.sample, {"self": SURVEY, "size": 5, "random_state": 0}),
        lambda found: found[NAMES],
        vary("size", 6, LARGER, lambda found: len(found[NAMES])),
        different={"random_state": 1},
    ),
    *rows(SurveyPosterior.synthetic, MADE, of_copies, *COPIES),
    *rows(
        into_empty_folder(SurveyPosterior.write_synthetic),
        *({**MADE, "folder": FOLDER.name}, of_files, *map(as_files, COPIES), *OF_FILES),
    ),
    *rows(
        *(SurveyPosterior.unmeasured, {"self": OPEN, "level": 0.8}),
        lambda found: found["width"].sum(),
        larger={"level": 0.9},
    ),
    *of_methods(
        SURVEY.marginal("y"),
        {
            "quantile": (
                *({"level": 0.5, **EDGES}, lambda found: found.value.mean()),
                {"larger": {"level": 0.7, **WIDER}},
            ),
            "quantiles": (
                *({"levels": [0.5], **EDGES}, first_value_of),
                {"larger": {"levels": [0.7], **WIDER}},
            ),
        },
    ),
    *of_methods(
        TABLE,
        {
            "interval": ({}, first_width, {"larger": {"level": 0.99}}),
            "cdf": ({"values": 0.3}, lambda p: float(p.sum()), {"larger": {"values": 0.4}}),
            "sample": (
                *({"size": 5, "random_state": 0}, np.array, vary("size", 6, LARGER, len)),
                {"different": {"random_state": 1}},
            ),
            "difference": (CORNERS, mean_of, TOWARDS_EACH_OTHER),
            "quantity": (
                *({"function": lambda p: p["a", "a"]}, mean_of),
                *(vary("label", "share", DIFFERENT, repr), SHARE),
            ),
        },
    ),
]
