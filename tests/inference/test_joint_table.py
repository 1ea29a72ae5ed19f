"""Marginals and conditionals of joint tables: against the mixtures over all data sets, and against
draws of the whole table.
"""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy import special, stats

import opendp_bayes as ob
from tests.helpers import brute_force
from tests.helpers.releases import guarantee
from tests.helpers.sweeps import some_of

AXES = ("region", "vote")
CELLS = tuple(product(["n", "s"], ["yes", "no", 3]))
PRIOR = (0.5, 1.0, 0.3, 2.0, 1.0, 0.7)
DRAWN = (3, 2, -1, 1, 2, 0)
VALUES = np.array([0.02, 0.1, 0.3, 0.5, 0.8, 0.97])
#: What counts in cells and components in groups may change a probability by.
ERROR = 1e-3
MECHANISMS = {
    "K-norm": (ob.KNormParameters(1.5), DRAWN, 7),
    "Laplace": (ob.LaplaceParameters(1.0), DRAWN, 7),
    "Laplace, private": (ob.LaplaceParameters(0.4, total="private"), (1, 2, -1, 1, 2, 0), None),
    "listed": (ob.mechanisms.HellingerExponential(0.3), (3, 2, 0, 1, 1, 0), 7),
}


def table(name):
    mechanism, drawn, size = MECHANISMS[name]
    return ob.Release(drawn, CELLS, PRIOR, mechanism, guarantee(size), AXES)


@pytest.fixture(scope="module", params=some_of(MECHANISMS, 2))
def release(request):
    return table(request.param)


def exact_cdf(release, inside, group, values=VALUES):
    """Of the probability of the cells `group` divided by that of the cells `inside`: the mixture of
    Betas over every data set.
    """
    sets, weights = brute_force.data_sets(release, 5 if release.size is None else None)
    seen = weights > 1e-15
    a = (np.array(release.prior) + sets)[seen]
    own = a[:, group].sum(axis=1)
    rest = a[:, inside].sum(axis=1) - own
    return special.betainc(own, rest, np.asarray(values)[:, None]) @ weights[seen]


def places(**wanted):
    at = {name: AXES.index(name) for name in wanted}
    return [i for i, cell in enumerate(CELLS) if all(cell[at[n]] == v for n, v in wanted.items())]


def test_marginals_and_conditionals_are_those_of_every_data_set(release):
    posterior = release.posterior
    assert posterior.axes == AXES
    for axis, labels in (("region", ("n", "s")), ("vote", ("yes", "no", 3))):
        found = posterior.marginal(axis)
        assert (found.categories, found.axes) == (labels, ())
        for number, label in enumerate(labels):
            right = exact_cdf(release, list(range(6)), places(**{axis: label}))
            assert found.cdf(VALUES)[:, number] == pytest.approx(right, abs=ERROR)
        assert found.prior == pytest.approx(
            [sum(PRIOR[i] for i in places(**{axis: label})) for label in labels]
        )
    for region, other in (("n", "s"), ("s", "n")):
        found = release.posterior.conditional("vote", region=region)
        assert found.categories == ("yes", "no", 3)
        inside = places(region=region)
        for number, label in enumerate(found.categories):
            own = places(region=region, vote=label)
            right = exact_cdf(release, inside, own)
            assert found.cdf(VALUES)[:, number] == pytest.approx(right, abs=ERROR)
        # Negative control: the other region is told from this one.
        wrong = exact_cdf(release, places(region=other), places(region=other, vote="yes"))
        assert np.abs(found.cdf(VALUES)[:, 0] - wrong).max() > 10 * ERROR


VALUES_OF = {"x": ("a", "b"), "y": ("c", "d", "e"), "z": (1, 2)}


def three_variables():
    """Noise that is none, and priors of which no two are equal: the cells' law is Dirichlet, whose
    concentrations are the second value, with an axis for each variable.
    """
    cells = tuple(product(*VALUES_OF.values()))
    counts, prior = np.arange(12) * 5 % 12, 0.3 * 1.25 ** np.arange(12)
    drawn, mechanism = tuple(counts.tolist()), ob.LaplaceParameters(0.01)
    made = ob.Release(
        drawn, cells, tuple(prior.tolist()), mechanism, guarantee(66), tuple(VALUES_OF)
    )
    return made.posterior, (counts + prior).reshape(2, 3, 2), prior.reshape(2, 3, 2)


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.slow), 2])
def test_answers_of_three_variables_by_their_definition(number):
    """Given `number` of them, last named first: all others in every order, and in that of the table
    where none is named. Means of 3000 draws are within five standard errors, and further with
    probability 6e-7; the seed is fixed.
    """
    posterior, concentration, prior = three_variables()
    names = list(VALUES_OF)
    for fixed in combinations(reversed(names), number):
        rest = [name for name in names if name not in fixed]
        for values in product(*(VALUES_OF[name] for name in fixed)):
            given = dict(zip(fixed, values, strict=True))
            at = tuple(
                VALUES_OF[name].index(given[name]) if name in given else slice(None)
                for name in names
            )
            orders = [order for m in range(1, len(rest) + 1) for order in permutations(rest, m)]
            for order in [*orders, None] if fixed else orders:
                wanted = order or tuple(rest)
                found = (
                    posterior.conditional(*(order or ()), **given)
                    if fixed
                    else posterior.marginal(*order)
                )
                left = tuple(rest.index(name) for name in rest if name not in wanted)
                kept = [name for name in rest if name in wanted]
                turned = [kept.index(name) for name in wanted]
                a, alpha = (
                    of[at].sum(axis=left).transpose(turned).ravel() for of in (concentration, prior)
                )
                labels = list(product(*(VALUES_OF[name] for name in wanted)))
                alone = len(wanted) == 1
                assert found.categories == tuple(label[0] if alone else label for label in labels)
                assert found.axes == (() if alone else wanted)
                assert found.prior == pytest.approx(alpha)
                law = stats.dirichlet(a)
                assert found.mean() == pytest.approx(law.mean(), abs=1e-4)
                assert found.std() == pytest.approx(np.sqrt(law.var()), rel=2e-3)
        drawn = found.sample(3000, random_state=1).mean(axis=0)
        assert np.all(np.abs(drawn - law.mean()) < 5 * np.sqrt(law.var() / 3000))
        assert np.abs(law.mean() - a[::-1] / a.sum()).max() > 0.02, "another order is noticed"


def test_what_is_left_out_has_no_part_in_it():
    """Conditional on a region in which one cell was left out as impossible."""
    cells = (("n", "yes"), ("n", "no"), ("s", "no"), ("s", "maybe"))
    made = ob.Release(
        (10, 20, 30, 40), cells, (1.0,) * 4, ob.KNormParameters(0.01), guarantee(100), AXES
    )
    assert made.posterior.marginal("vote").categories == ("yes", "no", "maybe")
    assert made.posterior.conditional("vote", region="s").categories == ("no", "maybe")
    assert made.posterior.conditional("vote", region="s").mean() == pytest.approx(
        [31 / 72, 41 / 72]
    )
    with pytest.raises(ValueError, match=r"categories=\['n'\]: .* at least 2"):
        made.posterior.conditional("region", vote="yes")


@pytest.mark.parametrize(
    ("variables", "given", "match"),
    [
        (("party",), {}, r"variables=\['party'\]: .*some of the"),
        (("vote", "vote"), {"region": "n"}, "each once"),
        (("vote",), {"vote": "yes"}, "values of other variables than"),
        (("vote",), {}, "values of other variables than"),
        (("vote",), {"party": "x"}, r"given=\['party'\]: .*some of the"),
        (("vote",), {"region": "west"}, r"region='west': .*not a value .*'n', 's'"),
        (("region",), {"vote": True}, "vote=True: is not a value"),
        (("region",), {"vote": 3.0}, r"vote=3\.0: is not a value"),
        ((), {"region": "n", "vote": "no"}, r"variables=\[\]: .*some of the"),
    ],
)
def test_what_is_no_part_of_the_table_is_refused(variables, given, match):
    with pytest.raises(ValueError, match=match):
        table("K-norm").posterior.conditional(*variables, **given)
    with pytest.raises(ValueError, match=r"variables=\['votes'\]: must be some of"):
        table("K-norm").posterior.marginal("votes")
