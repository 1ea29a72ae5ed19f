"""Put a specification to a file, without the command line."""

from pathlib import Path

import polars as pl

from opendp_bayes.surveys.survey_query import SurveyQuery
from opendp_bayes_office.commands import answers
from opendp_bayes_office.files.files import Source, source
from opendp_bayes_office.report.specification import Specification


def survey_of(data: Path | Source, asked: Specification) -> SurveyQuery:
    """The survey that a specification asks of a file."""
    if isinstance(data, Path) and data.suffix == ".csv":
        frame = pl.read_csv(data, infer_schema=False).lazy()
    else:
        frame = answers.frame_of(data if isinstance(data, Source) else source(data, None), asked)
    return answers.survey_of(frame, answers.typed(asked, frame))
