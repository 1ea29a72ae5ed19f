"""The noise-aware posterior as its users see it: a mixture of Dirichlet distributions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.display.pictures import Panel, plot_panel
from opendp_bayes.display.sheet import labelled_frame
from opendp_bayes.display.wording import group_name, label_said
from opendp_bayes.inference.answers.by_label import (
    Intervals,
    TableCells,
    check_others,
    grouped_positions,
    positions_among,
    positions_of,
)
from opendp_bayes.inference.answers.ordered import (
    OF_NO_ORDER,
    QuantilePosterior,
    Quantiles,
    left_out_said,
    quantiles_of,
    said_of_pulls,
)
from opendp_bayes.inference.answers.quantities import (
    OfDraws,
    OfMixture,
    Quantities,
    Quantity,
    values_of,
)
from opendp_bayes.inference.answers.whole_numbers import CountsPosterior, NumberPosterior
from opendp_bayes.inference.engines import Engine, Groups
from opendp_bayes.inference.laws.beta_mixture import pointwise_level
from opendp_bayes.inference.sampling.importance import WeightDiagnostics
from opendp_bayes.inference.sampling.markov_chain import Diagnostics
from opendp_bayes.mathematics.telling import shortly, told, warn
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    RandomState,
    as_choice,
    as_generator,
    as_level,
    as_numbers,
    as_size,
    as_text,
)
from opendp_bayes.release_format.data import Label, ReleasedData, Value
from opendp_bayes.release_format.labels import are_same, distinct, place_of, position_of

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

N = TypeVar("N", bound="NoiseAwarePosterior")

Interval = Literal["eti", "hdi", "simultaneous"]
Among = Literal["all", "answered"]

#: Draws behind every number that is estimated by simulation.
DRAWS = 40_000
#: And behind quantiles, of which there may be some of each of many groups.
_OF_QUANTILES = 10_000
#: Draws on which a function is tried before many are made.
_TRIAL = 5
#: Simultaneous intervals and comparisons of many categories rest on so many draws of single
#: categories, and on no fewer draws of all.
_MOST_COUNTS, _FEWEST_DRAWS = 1 << 21, 2000


class NoiseAwarePosterior(UnderflowIsZero):
    r"""The posterior of the category probabilities given a release: `p(θ | r) ∝ sum_x P(r | x) p(x)
    Dirichlet(θ; prior + x)` over the possible counts x.

    It is a mixture of Dirichlet distributions, of which groups of categories and some among
    themselves are mixtures, too. Made by `release.posterior` or `noise_aware_posterior`, and by
    `merged` and `given` of another. Arrays over categories have shape `(k,)`, in the order of
    `categories`.

    Source: `docs/research/computation.md`.

    Attributes
    ----------
    releases : Sequence[Release]
        The release, or several of the same categories (`combine`).
    categories : tuple[str or int or bool or tuple, ...], optional
        The labels of the categories: the release's, unless `merged` or `given` made it.
    prior : tuple[float, ...]
        Concentration of the prior of their probabilities.
    axes : tuple[str, ...], optional
        The variables of a joint table (`marginal`, `conditional`); empty otherwise.
    unordered : tuple[str or int or bool or tuple, ...], optional
        The categories that stand for no value, or for values that are no category: labels of
        `nulls=` and `unknown=` that are not listed. Ordered answers leave them out.
    """

    def __init__(
        self,
        releases: Sequence[ReleasedData],
        engine: Engine,
        categories: tuple[Label, ...] | None = None,
        axes: tuple[str, ...] = (),
        unordered: tuple[Label, ...] = (),
        on_first_use: Callable[[], None] | None = None,
        pulls: Callable[[], Floats] | None = None,
        smooth: tuple[str, ...] | None = None,
    ) -> None:
        if not isinstance(releases, Sequence):
            raise TypeError(f"releases={told(releases)}: must be a list of releases.")
        self.releases = tuple(releases)
        if categories is None:
            categories, axes = self.releases[0].categories, self.releases[0].axes
            unordered = tuple(
                distinct(label for release in self.releases for label in release.unordered)
            )
        self.categories, self.axes, self.unordered = categories, axes, unordered
        self._engine = engine
        #: Called once, before the first answer of this posterior, but of no part of it.
        self._on_first_use = on_first_use
        #: Makes the records that a fixed prior may add to each category; None where none is fixed.
        self._pulls = pulls
        #: The variables along which a learned prior is smooth, by name; None under another prior.
        self._smooth = smooth
        #: Those that were asked for, by level and kind.
        self._intervals: dict[tuple[float, Interval], tuple[Floats, Floats]] = {}

    @property
    def prior(self) -> tuple[float, ...]:
        """Concentration of the prior of the probabilities."""
        return tuple(self._engine.prior.tolist())

    @property
    def learned(self) -> Quantities:
        """Posteriors of what was learned about the prior, by name; none where it was given.

        Of a learned prior these are the share of empty cells, the standard deviation of the others'
        log-intensity within margins, and that of the effects of each margin. Given a draw, the
        probabilities are Gamma variates divided by their sum, so that `prior` holds zeros.
        """
        behind = self._engine.independent
        return Quantities(
            (name, Quantity(name, OfDraws.of(values, min(behind, values.size)), None))
            for name, values in self._engine.learned.items()
        )

    @property
    def diagnostics(self) -> Diagnostics | WeightDiagnostics | None:
        """Diagnostics of Markov chains (`Diagnostics`) or of weighted draws (`WeightDiagnostics`),
        or None where the posterior was computed without any.
        """
        diagnostics: Diagnostics | WeightDiagnostics | None = self._engine.diagnostics
        return None if diagnostics is None else replace(diagnostics, categories=self.categories)

    def __getitem__(self, label: Label) -> Quantity:
        """The probability of one category. Raises `KeyError` for what is none."""
        return Quantity(label, self._law(position_of(label, self.categories)), 0.5)

    def _law(self, position: int) -> OfMixture:
        """The law of the probability of one category."""
        return OfMixture(self._basis.probabilities[position], self._engine.independent)

    @cached_property
    def counts(self) -> CountsPosterior:
        """The posterior of the true counts, those of the records that were counted."""
        return CountsPosterior(
            self.categories, self._basis.counted.counts, self._basis.counted.sample
        )

    @cached_property
    def records(self) -> NumberPosterior:
        """The posterior of the number of records; a certainty where that is public."""
        categories = list(range(len(self.categories)))
        return NumberPosterior(
            "records", self._basis.counted.records, self._basis.counted.sample, categories
        )

    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return self._basis.probabilities.mean()

    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return self._basis.probabilities.std()

    def pdf(self, values: ArrayLike) -> Floats:
        """Marginal posterior density of every category at the values of shape `(...)`; shape `(...,
        k)`. It is the least exact next to 0 and 1, where it may be infinite.
        """
        return self._basis.probabilities.pdf(as_numbers(values, "values")[..., None])

    def cdf(self, values: ArrayLike) -> Floats:
        """Marginal posterior probability of being at most the values, of shape `(...)`; shape
        `(..., k)`.
        """
        return self._basis.probabilities.cdf(as_numbers(values, "values")[..., None])

    def interval(self, level: float = 0.95, kind: Interval = "eti") -> Intervals[Floats]:
        """Lower and upper ends of credible intervals of probability `level`, two arrays of shape
        `(k,)`; both ends of one category by its label, `interval()["yes"]`. They are computed once.

        Parameters
        ----------
        level : float, default 0.95
            Between 0 and 1.
        kind : Interval, default "eti"
            `"eti"`, the equal-tailed interval; `"hdi"`, that of highest density, the shortest; or
            `"simultaneous"`, equal-tailed intervals widened until all of them hold together with
            probability `level` (by simulation).

        Raises
        ------
        ValueError
            For another level or kind.
        """
        level = as_level(level)
        as_choice(kind, "kind", get_args(Interval))
        if (level, kind) not in self._intervals:
            self._intervals[level, kind] = self._interval(level, kind)
        lower, upper = self._intervals[level, kind]
        return Intervals((lower.copy(), upper.copy()), self.categories)

    def summary(
        self, level: float = 0.95, kind: Interval = "eti", *, among: Among = "all"
    ) -> "pl.DataFrame":
        """A polars frame with a row for each category, or cell of a joint table, whose columns have
        the names of ArviZ.

        Columns: `category`, or one for each of `axes`, as text; `mean`; `sd`; and the ends of the
        interval, `eti95_lb` and `eti95_ub` by default.

        Parameters
        ----------
        level : float, default 0.95
            Between 0 and 1.
        kind : Interval, default "eti"
            As in `interval`.
        among : Among, default "all"
            Whether shares are of `"all"` records, or of those who `"answered"`: the categories
            that stand for no value or for other values (`unordered`) are left out, and the others'
            shares sum to 1.

        Raises
        ------
        ValueError
            For another level or kind, and where less than two categories are answers.
        """
        if as_choice(among, "among", get_args(Among)) == "answered" and self.unordered:
            return self._in_order.summary(level, kind)
        lower, upper = self.interval(level, kind)
        ends = f"{kind}{100 * as_level(level):g}"
        return self._frame(
            {"mean": self.mean(), "sd": self.std(), f"{ends}_lb": lower, f"{ends}_ub": upper}
        )

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for each category, or cell of a joint table.

        Columns: `category`, or one for each of `axes` (with `_` at the end of a name that is that
        of another column), as text; `mean`, `std`, and `lower` and `upper` end of the equal-tailed
        interval of probability `level`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        lower, upper = self.interval(level)
        return self._frame({"mean": self.mean(), "std": self.std(), "lower": lower, "upper": upper})

    def plot(
        self, ax: "Axes | None" = None, *, level: float = 0.95, title: str | None = None
    ) -> "Axes":
        """Draw means and equal-tailed intervals, a row for each category, and return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where it is drawn; by default new axes.
        level : float, default 0.95
            Between 0 and 1.
        title : str, optional
            Stands above.

        Raises
        ------
        ImportError
            Without matplotlib, the extra `plot`.
        ValueError, TypeError
            For another level, and for axes or a title that are none.
        """
        bounds = np.array([self.mean(), *self.interval(level)])
        rows = [label_said(group_name(label)) for label in self.categories]
        sentence = f"Posterior means and {100 * as_level(level):.6g} % intervals."
        return plot_panel(Panel("", rows, {"": bounds}), sentence, ax, title)

    def _frame(self, numbers: dict[str, Floats]) -> "pl.DataFrame":
        """A frame of numbers beside the labels."""
        labels: Any = self.categories
        columns = zip(*labels, strict=True) if len(self.axes) > 1 else [labels]
        return labelled_frame(dict(zip(self.axes or ["category"], columns, strict=True)), numbers)

    def sample(self, size: int = 1, random_state: RandomState = None) -> Floats:
        """Draws of the category probabilities, shape `(size, k)`.

        Parameters
        ----------
        size : int, default 1
            The number of draws.
        random_state : int or numpy.random.Generator, optional
            A seed, with which they are repeatable, or what they are drawn with; by default others
            at each call.
        """
        rng = as_generator(random_state)
        counts = self._engine.sample(as_size(size, "size", "draws"), rng)
        return self._engine.shares(counts, rng)

    def predictive(
        self, records: int, size: int = 4000, random_state: RandomState = None
    ) -> Integers:
        """Draws of the counts of so many further records from the posterior predictive
        distribution, shape `(size, k)`.
        """
        rng, records = as_generator(random_state), as_size(records, "records")
        return rng.multinomial(records, self.sample(size, rng))

    def merged(self: N, groups: Mapping[Label, Iterable[Label]]) -> N:
        """The posterior with groups of categories as one category each.

        `groups` maps the label of each group to the categories in it; the categories of no group
        stay what they are and come last. The probabilities of groups are Dirichlet given the
        counts as those of categories are, so nothing is lost.

        Raises
        ------
        ValueError, TypeError
            For groups that are empty or overlap, or leave less than two categories.

        Examples
        --------
        >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, PrivacyGuarantee, Release
        >>> promise = PrivacyGuarantee(9, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
        >>> labels = ("left", "green", "right")
        >>> release = Release((3, 2, 4), labels, (1.0,) * 3, LaplaceParameters(2.0), promise)
        >>> release.posterior.merged({"coalition": ["left", "green"]}).categories
        ('coalition', 'right')
        """
        labels, members = grouped_positions(groups, self.categories)
        unordered = set(positions_of(self.unordered, self.categories, "unordered"))
        apart = (
            label
            for label, positions in zip(labels, members, strict=True)
            if unordered.issuperset(positions)
        )
        return self._of_parts(members, labels, unordered=tuple(apart))

    def given(self: N, categories: Iterable[Label]) -> N:
        """The posterior of the probabilities within some categories: of each divided by the sum of
        all of these.

        Its `counts` are those of the categories, and `records` their number.

        Raises
        ------
        ValueError, TypeError
            For less than two categories, or what is none.
        """
        places = positions_of(categories, self.categories, "categories")
        labels = tuple(self.categories[i] for i in places)
        unordered = tuple(label for label in self.unordered if place_of(label, labels) is not None)
        return self._of_parts([[position] for position in places], labels, unordered=unordered)

    def difference(self, first: Label, second: Label) -> Quantity:
        """The probability of one category minus that of another, for instance of two parties, by
        draws.

        Raises
        ------
        ValueError
            For what is no category, and for the same one twice.
        """
        places = positions_of([first, second], self.categories, "first, second")
        others = [position for position in range(len(self.categories)) if position not in places]
        parts = [[position] for position in places] + ([others] if others else [])
        merged = self._of_parts(parts, tuple(range(len(parts))))
        return merged.quantity(_first_less_second, f"{first} - {second}")

    def cumulative(self) -> Quantities:
        """For ordered categories, the probability of each or one before it, among those that have
        an order (`unordered`). The last one's is 1 and left out.

        Raises
        ------
        ValueError
            For the cells of a joint table.
        """
        return self._cumulative

    @cached_property
    def _cumulative(self) -> Quantities:
        ordered = self._in_order
        mixtures = ordered._engine.cumulative(np.arange(1, len(ordered.categories)))
        behind = ordered._engine.independent
        return Quantities(
            (
                (label, Quantity(f"up to {label}", OfMixture(mixtures[position], behind), 0.5))
                for position, label in enumerate(ordered.categories[:-1])
            ),
            left_out_said(self.unordered),
        )

    @cached_property
    def _in_order(self: N) -> N:
        """The posterior of the categories that have an order, among themselves."""
        if len(self.axes) > 1:
            raise ValueError(
                f"axes={list(self.axes)!r}: the cells of a joint table have no order; ask the"
                f" quantile of one variable, as in marginal({self.axes[0]!r}).quantile(0.5)."
            )
        answers = [label for label in self.categories if place_of(label, self.unordered) is None]
        return self.given(answers) if self.unordered else self

    def quantile(self, level: float, *, edges: ArrayLike | None = None) -> QuantilePosterior:
        """A quantile of ordered categories, 0.5 for the median: the first category up to which
        the probabilities sum to at least `level`, with the probability of each to be that one, by
        draws.

        The order is that of `categories`, as they were given to the query, without those that are
        `unordered`.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        edges : array_like, optional
            The ends of the bins that the ordered categories are, one more than these, rising; the
            quantile then has a `value` in their units, with the records of a bin spread evenly
            within it.

        Raises
        ------
        ValueError, TypeError
            For another level, for edges that do not rise or are not one more than the categories,
            and for the cells of a joint table.

        Examples
        --------
        >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, PrivacyGuarantee, Release
        >>> promise = PrivacyGuarantee(90, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
        >>> ages, noise = ("18-39", "40-64", "65-89"), LaplaceParameters(2.0)
        >>> posterior = Release((30, 33, 27), ages, (1.0,) * 3, noise, promise).posterior
        >>> median = posterior.quantile(0.5, edges=[18, 40, 65, 90])
        >>> median.category, median.probabilities.round(2).tolist(), median.interval(0.9)
        ('40-64', [0.0, 1.0, 0.0], ('40-64', '40-64'))
        >>> round(median.value.mean())
        51
        """
        level = as_level(level, "0.5 for the median")
        return self.quantiles([level], edges=edges)[level]

    def quantiles(self, levels: Sequence[float], *, edges: ArrayLike | None = None) -> Quantiles:
        """Several quantiles at once, by their `levels`, all different and between 0 and 1; with
        `edges`, the rising ends of the bins, each has a `value` in their units. Warns of those that
        a fixed prior may have moved by more than half a standard deviation, and where a prior was
        learned that knows of no order.

        Raises
        ------
        ValueError, TypeError
            For other levels, for edges that do not rise or are not one more than the categories,
            and for the cells of a joint table.
        """
        ordered = self._in_order
        number = min(_OF_QUANTILES, ordered._number_of_rows)
        draws = ordered.sample(number, random_state=0)
        behind = ordered._effective(number)
        quantiles = quantiles_of(ordered.categories, levels, edges, draws, behind, self.unordered)
        if ordered._smooth == ():
            quantiles.warning = OF_NO_ORDER
        elif ordered._pulls is not None:
            records = float(ordered._basis.counted.counts.mean().sum())
            quantiles.warning = said_of_pulls(
                quantiles, ordered._pulls(), records, ordered._engine.cumulative
            )
        if quantiles.warning:
            warn(quantiles.warning)
        return quantiles

    def quantity(
        self,
        function: Callable[[Mapping[Label, Floats]], ArrayLike],
        label: str = "quantity",
        *,
        of: Literal["probabilities", "counts"] = "probabilities",
        draws: int | None = None,
        random_state: RandomState = 0,
    ) -> Quantity:
        """Any function of the probabilities, or of the true counts, by 40 000 `draws`, or by all of
        a table of a survey, unless others are asked for.

        `function` takes a mapping from each category to its draws, shape `(draws,)`, and returns a
        number for each draw, as `lambda p: p["yes"] - 2 * p["no"]` does. It is tried on a few draws
        first.

        Raises
        ------
        ValueError
            If it returns anything else or `draws` is 1.
        KeyError
            If it asks for what is no category; `TypeError` for what is no function.
        """
        if not callable(function):
            raise TypeError(
                f"function={told(function)}: must be a function, such as lambda p: p['yes'] - 2 *"
                " p['no']."
            )
        label, _ = as_text(label, "label"), as_generator(random_state)
        as_choice(of, "of", ("probabilities", "counts"))
        number = self._number if draws is None else as_size(draws, "draws", "draws")
        if number < 2:
            raise ValueError(f"draws={draws}: must be at least 2, for a standard deviation.")
        of_rows = partial(values_of, function, self.categories)
        trial = np.random.default_rng(0).dirichlet(np.ones(len(self.categories)), _TRIAL)
        of_rows(trial if of == "probabilities" else np.rint(100 * trial).astype(np.int64))
        of_all = self.sample if of == "probabilities" else self.counts.sample
        source = partial(_of_draws, of_rows, of_all)
        return Quantity(label, OfDraws(source, number, self._effective(number), random_state))

    def marginal(self: N, *variables: str) -> N:
        """The posterior of the probabilities of one variable, or of a table of several in the order
        given, whatever the others are.

        The probability of a value is the sum of those of its cells, which is Dirichlet given the
        counts as they are, so nothing is lost. Values are in the order of the cells.

        Raises
        ------
        ValueError, TypeError
            For what is no table or no variable of it, and where less than two values remain.

        Examples
        --------
        >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, PrivacyGuarantee, Release
        >>> promise = PrivacyGuarantee(9, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
        >>> cells = (("n", "yes"), ("n", "no"), ("s", "yes"), ("s", "no"))
        >>> axes = ("region", "vote")
        >>> drawn, mechanism = (3, 2, 1, 3), LaplaceParameters(2.0)
        >>> table = Release(drawn, cells, (1.0,) * 4, mechanism, promise, axes).posterior
        >>> table.marginal("vote").categories
        ('yes', 'no')
        >>> table.conditional("vote", region="n").mean().round(2).tolist()
        [0.55, 0.45]
        """
        positions = positions_among(self.axes, variables)
        return self._collapsed(positions, range(len(self.categories)))

    def conditional(self: N, /, *variables: str, **given: Value) -> N:
        """The posterior of the probabilities of one variable, or of a table of several, among the
        records for which other variables have the values `given`.

        It is a mixture of Dirichlets too: probabilities within some cells are Dirichlet given their
        counts. Without `variables`, of all that are not given.

        Raises
        ------
        ValueError, TypeError
            For what is no table, no variable or no value of it, and where less than two values
            remain.
        """
        names = variables or [variable for variable in self.axes if variable not in given]
        positions = positions_among(self.axes, names)
        check_others(given, names)
        cells = TableCells(self.axes, self.categories).given(given)
        return self._collapsed(positions, cells)

    def _collapsed(self: N, positions: Sequence[int], inside: Sequence[int]) -> N:
        """The posterior of the variables at `positions` among the cells at `inside`."""
        labels, parts = TableCells(self.axes, self.categories).collapsed(positions, inside)
        names, unordered = tuple(self.axes[position] for position in positions), tuple[Label, ...]()
        if len(names) == 1:
            values = [
                label
                for release in self.releases
                for label in release.unordered_values(release.axes.index(names[0]))
            ]
            unordered = tuple(label for label in labels if place_of(label, values) is not None)
        return self._of_parts(parts, labels, names if len(names) > 1 else (), unordered, names)

    def _part(self: N, release: ReleasedData) -> N:
        """The posterior of one group of a table of groups: conditional on being in it."""
        parts, labels = [[position] for position in release.inside], release.categories
        posterior = self._of_parts(parts, labels, release.axes, release.unordered, release.ordered)
        posterior.releases = (release,)
        return posterior

    def _of_parts(
        self: N,
        parts: Groups,
        labels: tuple[Label, ...],
        axes: tuple[str, ...] = (),
        unordered: tuple[Label, ...] = (),
        names: tuple[str, ...] | None = None,
    ) -> N:
        """The posterior of the probabilities of parts of the categories, among each other.

        What is known of the prior is kept: its pulls, and along which of the `names`, by default of
        all, it is smooth.
        """
        if len(parts) < 2:
            raise ValueError(
                f"categories={list(labels)!r}: would be all that are left; must be at least 2,"
                " because the probability of one among itself is 1."
            )
        inside = [position for cells in parts for position in cells]
        engine, groups = self._engine, parts
        if len(inside) < len(self.categories):
            engine, places = engine.given(inside), iter(range(len(inside)))
            groups = [[next(places) for _ in cells] for cells in parts]
        if groups != [[position] for position in range(len(inside))]:
            engine = engine.merged(groups)
        posterior = self._made(engine, labels, axes, unordered)
        posterior._smooth = self._smooth
        if self._smooth is not None and names is not None:
            posterior._smooth = tuple(name for name in self._smooth if name in names)
        if self._pulls is not None:
            posterior._pulls = partial(_summed, self._pulls, parts)
        return posterior

    def _made(
        self: N,
        engine: Engine,
        categories: tuple[Label, ...],
        axes: tuple[str, ...] = (),
        unordered: tuple[Label, ...] = (),
    ) -> N:
        """The posterior of other categories."""
        return type(self)(self.releases, engine, categories, axes, unordered)

    def compare(self, other: "NoiseAwarePosterior") -> Quantities:
        """The difference of the probabilities of each category, this posterior's minus the other's,
        for two independent data sets, by draws: of one category `compare(other)["yes"]`.

        Raises
        ------
        TypeError
            For what is no posterior.
        ValueError
            If the two do not have the same categories in the same order.
        """
        if not isinstance(other, NoiseAwarePosterior):
            raise TypeError(f"other: must be a posterior, not {type(other).__name__}.")
        if not are_same(self.categories, other.categories):
            raise ValueError(
                f"other: has the categories {other.categories}, not"
                f" {self.categories}; compare posteriors of the same categories."
            )
        return Quantities(
            (label, Quantity(label, self._less(other, position)))
            for position, label in enumerate(self.categories)
        )

    def _less(self, other: "NoiseAwarePosterior", position: int) -> OfDraws:
        """The law of one probability minus that of the other posterior, of independent data."""
        first, second = self._law(position), other._law(position)
        number = self._number_of_rows
        behind = 1 / (1 / number + 1 / first.draws + 1 / second.draws)
        return OfDraws(partial(_of_independent, first, second), number, behind, 0)

    @property
    def _basis(self) -> Engine:
        """The engine, from which answers are computed, after what is to be said first."""
        first, self._on_first_use = self._on_first_use, None
        if first is not None:
            first()
        return self._engine

    @property
    def _number(self) -> int:
        """Draws behind what is estimated by simulation, where no number is asked for."""
        return DRAWS

    @property
    def _number_of_rows(self) -> int:
        """Number of draws of all categories together, fewer where they take memory."""
        return min(max(_MOST_COUNTS // len(self.categories), _FEWEST_DRAWS), self._number)

    def _effective(self, draws: int) -> float:
        """Independent draws that `draws` draws are worth: no more than those that they are taken
        from, where the posterior is known by draws itself.
        """
        return 1 / (1 / draws + 1 / self._engine.independent)

    def _interval(self, level: float, kind: Interval) -> tuple[Floats, Floats]:
        if kind == "hdi":
            return self._basis.probabilities.shortest_interval(level)
        if kind == "simultaneous" and len(self.categories) > 2:
            draws = self.sample(self._number_of_rows, random_state=0)
            level = pointwise_level(self._basis.probabilities, draws, level)
        return self._basis.probabilities.interval(level)

    def _estimates(self) -> str:
        """Means and standard deviations, for `repr`."""
        estimates = zip(self.categories, self.mean(), self.std(), strict=True)
        texts = (f"{label!r}: {mean:.4g} ± {std:.2g}" for label, mean, std in estimates)
        return shortly(texts, len(self.categories))

    def __repr__(self) -> str:
        behind = self._engine.independent
        how = f"by {behind:.0f} effective draws" if np.isfinite(behind) else "exact"
        return f"NoiseAwarePosterior({{{self._estimates()}}}, {how})"


def _summed(pulls: Callable[[], Floats], parts: Groups) -> Floats:
    """The pulls of some parts of the categories."""
    records = pulls()
    return np.array([records[list(members)].sum() for members in parts])


def _first_less_second(shares: Mapping[Label, Floats]) -> Floats:
    return shares[0] - shares[1]


def _of_independent(
    first: OfMixture, second: OfMixture, draws: int, random_state: RandomState
) -> Floats:
    """Draws of a probability minus those of another."""
    rng = as_generator(random_state)
    return first.sample(draws, rng) - second.sample(draws, rng)


def _of_draws(
    of_rows: Callable[[Any], Floats],
    sample: Callable[..., Any],
    draws: int,
    random_state: RandomState,
) -> Floats:
    """A function of the rows that are drawn."""
    return of_rows(sample(draws, random_state))
