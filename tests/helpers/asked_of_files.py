"""Put a specification to a file, without the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from opendp_bayes.surveys.survey_query import SurveyQuery
from opendp_bayes_office.commands import answers
from opendp_bayes_office.files.files import Source, frame_of, scannable, source
from opendp_bayes_office.files.reading import Reading, Steps
from opendp_bayes_office.report.specification import Specification


def survey_of(data: Path | Source, asked: Specification) -> SurveyQuery:
    """The survey that a specification asks of a file."""
    if isinstance(data, Path) and data.suffix == ".csv":
        frame = pl.read_csv(data, infer_schema=False).lazy()
        data = Source(data, data.name, ".parquet", asked, frame=frame)
    found = data if isinstance(data, Source) else source(data, asked)
    return answers.survey_of(answers.frame_in(found, asked), asked)


def records_of(path: Path, columns: Sequence[str] = (), **how: Any) -> pl.DataFrame:
    """The records of a file after all that is done to values, of some columns or of all."""
    with scannable(source(path, Reading(**how))) as found:
        frame = frame_of(found, {name: Steps() for name in columns or found.schema()})
        found.complete()
        return frame.collect(engine="streaming")
