"""Arguments of the presets by the papers' names, of the law of an error and of the curves."""

import opendp_bayes as ob
import opendp_bayes_research as research
from opendp_bayes_research import papers
from tests.helpers.argument_rows import DIFFERENT, SMALLER, rows, vary
from tests.helpers.argument_rows_of_losses import scale

TWO = (1.0, 1.0)
PRESETS = (
    *(papers.lap, papers.lap_truncated, papers.ilap, papers.ehd, papers.ehdl, papers.ehds),
    papers.beta,
)

OF_K, MORE, STRONGER = {"epsilon": 1.0, "k": 2}, {"k": 3}, {"epsilon": 2.0}
PAPERS = [
    *rows(papers.lap, OF_K, scale, larger=MORE, smaller=STRONGER),
    *rows(papers.lap_truncated, OF_K, scale, larger=MORE, smaller=STRONGER),
    *rows(papers.ilap, OF_K, scale, larger=MORE, smaller=STRONGER),
    *rows(
        *(papers.ehd, {"epsilon": 1.0, "size": 10, "prior": TWO}, scale),
        larger={"size": 2, "prior": (0.1, 0.1)},
        smaller=STRONGER,
    ),
    *rows(papers.ehdl, {"epsilon": 1.0}, scale, smaller=STRONGER),
    *rows(papers.ehds, {"epsilon": 1.0}, scale, larger={"gamma": 2.0}, smaller=STRONGER),
    *rows(
        *(papers.beta, {"epsilon": 1.0, "delta": 1e-6, "size": 100}, lambda of: of.beta),
        vary("epsilon", 2.0, SMALLER, scale),
        larger={"delta": 1e-3},
        smaller={"size": 1000},
    ),
    *rows(
        research.error_law,
        {"mechanism": ob.LaplaceParameters(1.0), "counts": (5, 5), "prior": TWO},
        *(lambda law: law.mean(), vary("error", "kl", DIFFERENT)),
        larger={"mechanism": ob.LaplaceParameters(2.0)},
        smaller={"counts": (50, 50), "prior": (9.0, 9.0)},
    ),
]
