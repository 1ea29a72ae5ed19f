"""No callback ends the interpreter or shows data, no map goes unchecked, features are named."""

import json
import math
import os
import subprocess
import sys
import threading
import traceback
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_bayes as ob
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.trusted.boundary import (
    _FILTER,
    ContractError,
    checked_map,
    descriptor_of,
    guarded,
    require_features,
    silenced,
    withheld,
)
from opendp_bayes.trusted.spaces import CountsSpace
from tests.helpers.contexts import plain_context

PRIVATE = "row-4711-diagnosis"
PURE = dp.max_divergence()

# --- what reaches the analyst, in an interpreter of its own
PROGRAM = """
import dataclasses, itertools, json, sys, traceback
from typing import ClassVar
sys.modules["sklearn"] = None  # the prelude would load it, which takes a second
import numpy as np
import opendp.prelude as dp
import polars as pl
import opendp_bayes as ob
from opendp_bayes.trusted.cells import Cells
from opendp_bayes.mechanisms import registry
from opendp_bayes.inference import ways

_, private, *places = sys.argv
dp.enable_features("contrib", "honest-but-curious")
KINDS = {
    "ValueError": ValueError,
    "PanicException": pl.exceptions.PanicException,
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": SystemExit,
}
FRESH = range(21, 31)
armed, place = None, places[0]  # the exception that is raised next, and where
runs = 0


def visit(here):
    if armed is not None and here == place:
        raise armed


@dataclasses.dataclass(frozen=True)
class Visited:
    scale: float
    name: ClassVar[str] = "visited"

    def check(self, *, size, prior): ...
    def log_pmf(self, counts, prior): ...

    def sample(self, counts, prior, draws=1):
        visit("sampling")
        return np.asarray(counts)[None]

    def proven_loss(self, d_in, *, size, prior, delta=0.0):
        if d_in in FRESH:  # at which a map is not checked when it is built
            visit("privacy map")
        if self.scale not in (1.0, 2.0**60):  # not tried before the search
            visit("calibration")
        return ob.PrivacyLoss(d_in / self.scale, d_in / self.scale, d_in / self.scale)


count = Cells.counts
Cells.counts = lambda *given: (visit("counting"), visit("survey: counting"), count(*given))[2]
registry._classes["visited"] = Visited
ways.check_posterior = lambda release: None  # it has none
data = pl.LazyFrame({"x": [True, True, False]})
arguments = {"column": "x", "categories": [True, False], "nulls": True}
counts = ob.t.make_categorical_counts(
    dp.domain_of(data, infer=True), dp.symmetric_distance(), **arguments
)
posterior = counts >> ob.t.then_dirichlet_multinomial(prior=1.0)
measurement = posterior >> ob.m.then_mechanism(dp.max_divergence(), Visited(1.0))
context = dp.Context.compositor(
    data=data,
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=float("inf")),
)


def run():
    global runs
    runs += 1
    if place == "privacy map":
        measurement.map(FRESH[runs])  # the loss at a distance is computed once
    elif place == "calibration":
        ob.posterior(context.query(epsilon=0.7), mechanism="visited", **arguments).release()
    elif place == "survey: counting":
        ob.survey(context.query(epsilon=0.7), {"one": arguments, "two": arguments}).resolve()(data)
    else:
        measurement(data)


def everything_in(error):
    pending, done = [error], []
    while pending:
        error = pending.pop()
        if error is not None and error not in done:
            done.append(error)
            yield from (str(error), repr(error), repr(error.args))
            yield from getattr(error, "__notes__", [])
            yield from traceback.format_exception(error)
            pending += [error.__cause__, error.__context__]


for place, kind in itertools.product(places, KINDS):
    armed, seen, raised = KINDS[kind](private), "", None
    try:
        run()
    except BaseException as error:
        raised, seen = type(error).__name__, "".join(everything_in(error))
    armed = None
    run()
    found = {"raised": raised, "seen": seen, "after": measurement.map(2)}
    print(json.dumps([place, kind, found]), flush=True)
"""

KINDS = ["ValueError", "PanicException", "KeyboardInterrupt", "SystemExit"]
READING, PUBLIC = ("counting", "survey: counting", "sampling"), ("privacy map", "calibration")


@cache
def answers(places):
    """What an interpreter reports by place and kind, all that it printed, how it ended."""
    command = [sys.executable, "-c", PROGRAM, PRIVATE, *places]
    traced = {**os.environ, "RUST_BACKTRACE": "1"}  # as users have it
    process = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env=traced
    )
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    return (
        {(place, kind): found for place, kind, found in lines},
        process.stdout + process.stderr,
        process.returncode,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", READING)
def test_a_failing_callback_leaves_the_interpreter_alive_and_the_data_unseen(place, kind):
    found, printed, code = answers(READING)
    assert code == 0, printed[-600:]
    found = found[place, kind]
    assert found["raised"] == "OpenDPException"
    assert "failed. The cause is withheld, because it may depend on the data" in found["seen"]
    assert PRIVATE not in found["seen"] + printed
    assert found["after"] == 2.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PUBLIC)
def test_an_interrupted_privacy_map_leaves_the_interpreter_alive(place, kind):
    """Maps and searches run inside OpenDP too; what they read is public."""
    found, printed, code = answers(PUBLIC)
    assert (place, kind) in found, f"the interpreter ended with {code}: {printed[-600:]}"
    assert found[place, kind]["raised"] is not None
    assert found[place, kind]["after"] == 2.0


# --- guarded
def failing(error):
    def callback(_):
        raise error

    return guarded(callback, "counting")


ERRORS = KeyboardInterrupt, SystemExit, ValueError, pl.exceptions.ComputeError


@pytest.mark.parametrize("error", [kind(PRIVATE) for kind in ERRORS])
def test_guarded_withholds_the_cause(error):
    with pytest.raises(RuntimeError, match=r"counting failed\. .*cause is withheld") as caught:
        failing(error)(None)
    assert PRIVATE not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", [ValueError, Warning, pl.exceptions.PanicException])
def test_what_a_frame_fails_with_is_withheld_outside_of_callbacks_too(kind):
    def read():
        raise kind(PRIVATE)

    with pytest.raises(RuntimeError, match=r"reading failed\. .*cause is withheld") as raised:
        withheld(read, "reading")
    assert PRIVATE not in "".join(traceback.format_exception(raised.value))
    assert raised.value.__context__ is raised.value.__cause__ is None


def test_errors_of_files_are_shown_and_none_without_a_standard_error():
    def read():
        raise FileNotFoundError("votes.csv")

    with pytest.raises(FileNotFoundError, match=r"votes\.csv"):
        withheld(read, "reading")
    code = (
        "import os\nfrom opendp_bayes.trusted.boundary import silenced\nos.close(2)\n"
        "with silenced():\n    print('ran')"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "ran\n"


def test_what_a_library_writes_to_standard_error_goes_nowhere(capfd):
    """By the number of the file, as a panic of Rust does, from every thread and block."""

    def wrote(times: int = 200) -> None:
        for _ in range(times):
            with silenced():
                os.write(2, b"secret")
                with silenced():
                    os.write(2, b"secret")
                os.write(2, b"secret")

    threads = [threading.Thread(target=wrote) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(RuntimeError, match="The cause is withheld"):
        ob.on_disk(_PANICS)
    os.write(2, b"heard afterwards")
    assert capfd.readouterr().err == "heard afterwards"
    with pytest.raises(pl.exceptions.PanicException):  # the negative control
        _PANICS.collect()
    assert "panicked" in capfd.readouterr().err


#: A day beyond the calendar, written as text.
_PANICS = pl.LazyFrame({"day": [2**31 - 1]}, {"day": pl.Int32}).select(
    pl.col("day").cast(pl.Date).cast(pl.String)
)


def test_guarded_blocks_add_one_filter_and_pass_public_messages():
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for _ in range(3):
            with silenced(), silenced():
                pass
        assert warnings.filters.count(_FILTER) == 1
        assert warnings.filters[0] is _FILTER
    assert guarded(lambda value: value + 1, "adding")(1) == 2
    with pytest.raises(RuntimeError, match=r"^size is public$") as caught:
        failing(ContractError("size is public"))(None)
    assert caught.value.__context__ is None


# --- members that are none
BITS = pl.LazyFrame({"x": [True, False, True, True]})


def counts_of_bits(size: int | None = None) -> Any:
    metric = dp.symmetric_distance() if size is None else dp.change_one_distance()
    labels = {"column": "x", "categories": [True, False], "nulls": True}
    domain = dp.domain_of(BITS, infer=True)
    return ob.t.make_categorical_counts(domain, metric, size=size, **labels)


def posterior(size: int | None = 4) -> Any:
    return counts_of_bits(size) >> ob.t.then_dirichlet_multinomial(prior=1.0)


# Looks like nothing else, so that finding it in a message means that data got there
VALUE = 31_415_926.5
WRONG = {
    "wrong k": (np.array([VALUE, 1.0, 1.0]), "must be a float64 array of 2 concentrations"),
    "NaN": (np.array([np.nan, VALUE]), "must be a float64 array of 2 concentrations"),
    "infinite": (np.array([np.inf, VALUE]), "must be a float64 array of 2 concentrations"),
    "integers": (np.array([31_415_926, 1]), "must be a float64 array of 2 concentrations"),
    "negative": (np.array([-VALUE, 7.0]), "must hold 2 non-negative whole numbers"),
    "other size": (np.array([VALUE, 1.0]), "the number of records is not size=4, the public"),
    "text": ("31415926", "must be a float64 array of 2 concentrations"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_members_give_a_public_message_without_data(name):
    value, message = WRONG[name]
    measurement = ob.m.make_laplace_parameters(*posterior().output_space, PURE, 1.0)
    with pytest.raises(OpenDPException, match=message) as caught:
        measurement(value)
    assert "31415926" not in str(caught.value)
    assert "31_415_926" not in str(caught.value)


@pytest.mark.parametrize(
    "value", [np.array([1, 2, 3]), np.array([np.nan, 1.0]), np.array([-1, 5]), np.array([2.5, 1.5])]
)
def test_wrong_counts_give_a_public_message(value):
    counts = counts_of_bits()
    for then in (ob.t.then_dirichlet_multinomial(prior=1.0), ob.t.then_count_vector()):
        after = counts.output_space >> then
        with pytest.raises(OpenDPException, match="2 non-negative whole numbers"):
            after(value)


# --- feature flags
def context():
    return plain_context(BITS)


CALLERS = {
    "make_categorical_counts": lambda _, __: posterior(),
    "make_count_vector": lambda of, _: ob.t.make_count_vector(*of.output_space),
    "make_dirichlet_multinomial": lambda of, _: ob.t.make_dirichlet_multinomial(
        *of.output_space, prior=1.0
    ),
    "make_beta_binomial": lambda of, _: ob.t.make_beta_binomial(*of.output_space, prior=1.0),
    "make_mechanism": lambda _, of: ob.m.make_laplace_parameters(*of.output_space, PURE, 1.0),
}


@pytest.mark.parametrize("feature", ["contrib", "honest-but-curious"])
@pytest.mark.parametrize("caller", [*CALLERS, "posterior"])
def test_a_missing_feature_is_named_with_what_to_type(caller, feature):
    post, query = posterior(None), context().query()
    counts = counts_of_bits()
    call = CALLERS.get(
        caller, lambda _, __: ob.posterior(query, "x", categories=[True, False], nulls=True)
    )
    dp.disable_features(feature)
    said = rf"{caller} builds on.*enabled first: {feature}\. Run `import opendp.prelude as dp;"
    with pytest.raises(ValueError, match=said + r" dp\.enable_features\('contrib', 'honest"):
        call(counts, post)
    dp.enable_features(feature)
    call(counts, post)


def test_both_missing_features_are_named():
    dp.disable_features("contrib", "honest-but-curious")
    with pytest.raises(ValueError, match="enabled first: contrib, honest-but-curious"):
        require_features("test")


# --- maps
MAPS = {
    "NaN": (lambda d: (math.nan if d == 2 else float(d),), r"returned \(nan,\) at d_in=2; every"),
    "negative": (lambda d: (-1.0 if d else 0.0,), r"returned \(-1.0,\) at d_in=1; every bound"),
    "not a number": (lambda d: ("1",), r"returned \('1',\) at d_in=0; every bound must be"),
    "None": (lambda d: (None,), r"returned \(None,\) at d_in=0; every bound must be"),
    "positive at 0": (lambda d: (1.0,), r"returned \(1.0,\) at d_in=0; it must be 0 there"),
    "delta at 0": (lambda d: (float(d), 1e-9), r"returned \(0.0, 1e-09\) at d_in=0; it must be 0"),
    "decreasing": (lambda d: (1.0 / d if d else 0.0,), r"falls from \(1.0,\) to \(0.5,\) at"),
    "decreasing far out": (
        lambda d: (float(d if d < 60 else 1),),
        r"falls from \(16.0,\) to \(1.0,\) at d_in=64; it must not decrease",
    ),
    "delta decreasing": (lambda d: (float(d), 1 / d if d else 0.0), r"falls .*, 0.5\) at d_in=2"),
    "infinite, then less": (
        lambda d: (math.inf if d == 1 else 0.0,),
        r"falls from \(inf,\) to \(0.0,\) at d_in=2",
    ),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_that_cannot_be_right_are_refused(name):
    privacy_map, message = MAPS[name]
    with pytest.raises(ValueError, match=rf"Mechanism: its privacy map {message}"):
        checked_map(privacy_map, "Mechanism")


@pytest.mark.parametrize("distance", [0, 1, 2, 3, 4, 8, 16, 64])
def test_maps_are_checked_at_small_distances_and_some_larger(distance):
    with pytest.raises(ValueError, match=rf"returned \(nan,\) at d_in={distance};"):
        checked_map(lambda d: (math.nan if d == distance else float(d),), "Mechanism")


def test_maps_that_may_be_right_are_kept_and_those_that_forget_are_refused():
    """At eight records, four in each count, it is below its answer for four records of one."""
    checked = checked_map(lambda d: (d, 0), "Mechanism")
    assert checked(3) == (3.0, 0.0)
    assert checked_map(lambda d: (math.inf if d else 0.0,), "EHDL")(1) == (math.inf,)
    wrong = checked_map(lambda d: (1.0 if isinstance(d, Distance) else float(d**2),), "Mechanism")
    assert wrong(APART[0]) == (1.0,), "no probe is nearer than eight records in as many counts"
    with pytest.raises(ValueError, match=r"from \(16.0,\) to \(1.0,\) at d_in=Distance"):
        wrong(APART[2])


#: The same number of records, in one count, in several and in as many as there are.
APART = [Distance.limited(8, largest) for largest in (1, 2, 4, 8)]


@pytest.mark.parametrize("norm", ["records", "squared", "largest"])
def test_a_map_of_each_norm_of_a_distance_is_kept(norm):
    """Of eight records in as many counts, the squares are fewer than those of three in one."""
    checked = checked_map(lambda d: (float(getattr(Distance.of(d), norm)),), "Mechanism")
    for distance in (*APART, *reversed(APART)):
        assert checked(distance) == (getattr(distance, norm),)


@dataclass(frozen=True)
class Plugin:
    """A mechanism with the loss it is told."""

    scale: float
    loss: Any
    name: ClassVar[str] = "plugin"

    def check(self, *, size, prior): ...

    def log_pmf(self, counts, prior): ...

    def sample(self, counts, prior, draws=1):
        return np.asarray(counts)[None]

    def proven_loss(self, d_in, *, size, prior, delta=0.0):
        value = self.loss(d_in)
        return ob.PrivacyLoss(epsilon=value, rho=value, range=value)


@pytest.mark.parametrize("measure", [PURE, dp.zero_concentrated_divergence(), dp.approximate(PURE)])
@pytest.mark.parametrize(
    "name",
    ["NaN", "negative", "positive at 0", "decreasing", "decreasing far out", "infinite, then less"],
)
def test_a_plugin_with_an_impossible_map_makes_no_measurement(name, measure):
    """Up to the number of records, beyond which no two data sets are apart."""
    with pytest.raises(ValueError, match=r"Plugin: its .*map (returned|falls from)"):
        posterior(100) >> ob.m.then_mechanism(measure, Plugin(1.0, lambda d: MAPS[name][0](d)[0]))


def test_maps_of_plugins_are_checked_and_descriptors_name_what_is_needed():
    measurement = posterior(100) >> ob.m.then_mechanism(
        PURE, Plugin(1.0, lambda d: math.nan if d == 5 else float(d))
    )
    assert measurement.map(4) == 4.0
    with pytest.raises(OpenDPException, match="its privacy map returned"):
        measurement.map(5)
    with pytest.raises(
        ValueError, match=r"input_domain=AtomDomain\(T=i32\): .*output of make_thing"
    ):
        descriptor_of(dp.atom_domain(T="i32"), int, "make_thing")
    with pytest.raises(ValueError, match=r"input_domain=mine: .*output of make_thing"):
        descriptor_of(dp.user_domain("mine", lambda _: True, "text"), int, "make_thing")
    space = CountsSpace(("a", "b"), 5)
    assert descriptor_of(space.domain, CountsSpace, "make_thing") == space
    forged = dp.user_domain(CountsSpace(("a", "b"), 6).identifier, lambda _: True, space)
    with pytest.raises(ValueError, match="output of make_thing"):
        descriptor_of(forged, CountsSpace, "make_thing")


# --- warnings, in several threads
def test_warnings_of_overlapping_callbacks_are_not_shown() -> None:
    """The first that ends leaves the other silent, and the second leaves the process as it was."""
    started, entered, left = threading.Event(), threading.Event(), threading.Event()

    def first(value: Any) -> None:
        started.set()
        entered.wait(600)

    def second(value: Any) -> None:
        entered.set()
        left.wait(600)
        warnings.warn(PRIVATE, stacklevel=1)

    def work() -> None:
        guarded(first, "counting")(None)
        left.set()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        thread = threading.Thread(target=work)
        thread.start()
        started.wait(600)
        guarded(second, "counting")(None)
        thread.join()
        assert not seen
        warnings.warn("after", stacklevel=1)
        assert [str(warning.message) for warning in seen] == ["after"]


@pytest.mark.parametrize("action", ["always", "error"])
def test_a_filter_that_a_caller_adds_after_a_release_shows_no_warning_of_the_next(action) -> None:
    """It comes before ours, which are still there."""

    def callback(value: Any) -> None:
        warnings.warn(PRIVATE, stacklevel=1)

    with warnings.catch_warnings(record=True) as seen:
        guarded(callback, "counting")(None)
        warnings.simplefilter(action)
        guarded(callback, "counting")(None)
    assert not seen


def test_a_warning_of_a_thread_that_a_callback_started_is_not_shown() -> None:
    """As polars starts some, which call functions of the user's plan."""

    def callback(value: Any) -> None:
        thread = threading.Thread(target=lambda: warnings.warn(PRIVATE, stacklevel=1))
        thread.start()
        thread.join()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        guarded(callback, "counting")(None)
    assert not seen


def test_warnings_are_neither_shown_nor_raised_in_many_threads() -> None:
    def callback(value: Any) -> float:
        for _ in range(20):
            warnings.warn(PRIVATE, stacklevel=1)
            value = float(np.sqrt(np.float64(-1.0)))
        return value

    def work() -> None:
        for _ in range(20):
            results.append(guarded(callback, "counting")(None))

    for action in ("always", "error"):
        results: list[float] = []
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter(action)
            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not seen
        assert len(results) == 160
