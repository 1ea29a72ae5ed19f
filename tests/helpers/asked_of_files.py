"""Put a specification to a file, without the command line."""

from pathlib import Path

from opendp_bayes.commands import answers
from opendp_bayes.questions.survey_query import SurveyQuery
from opendp_bayes.report.specification import Specification
from opendp_bayes.trusted.files import Source, source


def survey_of(data: Path | Source, asked: Specification) -> SurveyQuery:
    """The survey that a specification asks of a file."""
    found = data if isinstance(data, Source) else source(data, asked.separator, asked.encoding)
    frame = answers.frame_of(found, asked)
    return answers.survey_of(frame, answers.typed(asked, frame))
