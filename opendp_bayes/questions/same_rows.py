"""Questions about the same rows of a frame, which one pass counts."""

from collections.abc import Iterable

from opendp_bayes.questions.asked import Asked
from opendp_bayes.questions.counts_of_frame import CountsOfFrame


def frames_of_the_same_rows(asked: Iterable[Asked]) -> list[CountsOfFrame]:
    """The counts of questions, if all are of one frame by the same plan, so that one pass can count
    for all of them; otherwise none.
    """
    every = list(asked)
    found = [one.frame for one in every if one.frame is not None]
    alike = len(found) == len(every) and all(one.gate.plan is found[0].gate.plan for one in found)
    return found if alike else []
