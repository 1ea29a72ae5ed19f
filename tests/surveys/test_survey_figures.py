"""The picture of a survey: what it draws is what the posteriors say."""

import pytest

from tests.surveys.test_survey import SURVEY

pytestmark = pytest.mark.usefixtures("pictures", "short_chains", "computed_once")


def test_what_no_figure_can_have_is_refused():
    with pytest.raises(ValueError, match=r"columns=0: .*between 1 and"):
        SURVEY.plot(columns=0)
    with pytest.raises(ValueError, match=r"level=1\.5: must be"):
        SURVEY.plot(level=1.5)
