"""What the analyst holds: frozen data, the plug-in posterior, JSON checked on the way back."""

import copy
import dataclasses
import json
import math
from typing import ClassVar

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.mechanisms import HellingerExponential, SmoothHellingerExponential
from opendp_bayes.mechanisms.neighbours import default_total
from opendp_bayes.release_format.data import ReleasedData
from tests.helpers.releases import guarantee

MECHANISMS = [ob.LaplaceParameters(0.1), ob.LaplaceParameters(3, "floored", "bounded")]
MECHANISMS += [ob.LaplaceParameters(1e-3, "discrete", "private"), HellingerExponential(1 / 3)]
MECHANISMS += [HellingerExponential(2.0, "local"), SmoothHellingerExponential(4.0)]
MECHANISMS += [SmoothHellingerExponential(4.0, **of) for of in ({"gamma": 0.2}, {"beta": 0.2})]


def release(
    mechanism=MECHANISMS[0],
    noisy_counts=(3, 0, 2),
    categories=("a", "b", "c"),
    prior=(0.5, 1.0, 2.0),
    size=5,
    loss=None,
):
    if loss is None:
        loss = mechanism.proven_loss(1, size=size, prior=np.array(prior))
    return ob.Release(noisy_counts, categories, prior, mechanism, guarantee(size, loss))


# --- the object
@pytest.mark.parametrize(
    "field",
    [field.name for field in dataclasses.fields(ob.Release)] + ["concentration", "counts", "size"],
)
def test_a_release_is_frozen(field):
    with pytest.raises(AttributeError):
        setattr(release(), field, None)


def test_a_release_is_a_value_whose_plug_ins_are_betas_or_a_dirichlet():
    """What a measurement drew has no posterior; the same in another order would be another rule."""
    assert release() == release()
    assert hash(release()) == hash(release())
    assert release() != release(noisy_counts=(3, 1, 1))
    made = release()
    data = ReleasedData(
        **{of.name: getattr(made, of.name) for of in dataclasses.fields(ReleasedData)}
    )
    assert made != data
    assert data != made
    assert data == copy.deepcopy(data)
    made = release()
    made.concentration[0] = 99.0
    assert made.concentration[0] == 3.5
    made = release(noisy_counts=(7, 3), categories=("yes", "no"), prior=(1.0, 2.0), size=10)
    assert made.plug_in.dist.name == "beta"
    assert made.plug_in.args == (8.0, 5.0)
    assert made.plug_in.mean() == pytest.approx(8 / 13)
    assert (
        made.plug_in.ppf([0.025, 0.975]).tolist() == stats.beta(8, 5).ppf([0.025, 0.975]).tolist()
    )
    made = release()
    assert isinstance(made.plug_in, type(stats.dirichlet([1.0, 1.0])))
    assert made.plug_in.alpha.tolist() == [3.5, 1.0, 4.0]
    assert made.plug_in.mean() == pytest.approx(np.array([3.5, 1.0, 4.0]) / 8.5)


# --- the plug-in posterior


# --- JSON


LABELS = [("a", "b", "missing"), (1, -(2**63), "missing"), (True, False, 1), (2**63 - 1, 0, 1)]
LABELS.append(("", 'é\n"\\', "\N{SNOWMAN}"))


@pytest.mark.parametrize("categories", LABELS)
def test_labels_keep_their_type(categories):
    read = ob.Release.from_json(release(categories=categories).to_json())
    assert read.categories == categories
    assert [type(label) for label in read.categories] == [type(label) for label in categories]


@settings(max_examples=100, deadline=None)
@given(
    noisy_counts=st.lists(st.integers(-(2**60), 2**60), min_size=2, max_size=6),
    scale=st.floats(1e-3, 1e9),
    prior=st.floats(1e-3, 1e9),
    d_in=st.integers(1, 10**6),
    loss=st.tuples(*[st.one_of(st.just(math.inf), st.floats(0, 1e308))] * 3),
    size=st.one_of(st.none(), st.integers(1, 10**12)),
)
def test_json_loses_nothing(noisy_counts, scale, prior, d_in, loss, size):
    mechanism = ob.LaplaceParameters(scale, total=default_total(size))
    least = mechanism.proven_loss(d_in, size=size, prior=np.ones(len(noisy_counts)))
    loss = map(max, loss, (least.epsilon, least.rho, least.range))
    loss = ob.PrivacyLoss(*loss, delta=1e-9, method="m")
    promise = ob.PrivacyGuarantee(size, d_in, loss, "Approximate(MaxDivergence)")
    labels = tuple(range(len(noisy_counts)))
    made = ob.Release(tuple(noisy_counts), labels, (prior,) * len(noisy_counts), mechanism, promise)
    assert ob.Release.from_json(made.to_json()) == made


SCHEMA = jsonschema.Draft202012Validator(ob.Release.json_schema())


def test_the_schema_is_one_and_refuses_what_the_reader_refuses():
    SCHEMA.check_schema(SCHEMA.schema)
    accepted = {
        name
        for name, (path, value, _) in CORRUPTED.items()
        if SCHEMA.is_valid(json.loads(changed(path, value)))
    }
    assert accepted == AGREEMENT
    cells = (("north", "no"), ("north", 3), ("so$_uth$", "yes"))
    made = dataclasses.replace(release(), categories=cells, axes=("region", "vote"))
    document = json.loads(made.to_json())
    SCHEMA.validate(document)
    assert (document["axes"], document["categories"][1]) == (["region", "vote"], ["north", 3])
    assert ob.Release.from_json(made.to_json()) == made


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_what_is_written_fits_the_schema(mechanism):
    SCHEMA.validate(json.loads(release(mechanism).to_json()))


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("axes", ["region"], r"axes=\['region'\]: must be different"),
        ("axes", ["region", "region"], "axes=.*: must be different"),
        ("axes", [], "category is one value"),
        ("axes", [1, 2], "is not a release in JSON"),
        ("categories", list("abc"), "category a list with a"),
        ("categories", [["a", "b"]] * 3, "must be all different"),
        ("categories", [["a", str(i), "c"] for i in range(3)], "a value of each"),
        ("categories", [["a", None]] * 3, "is not a release in JSON"),
    ],
)
def test_documents_that_are_no_table_are_refused(field, value, match):
    cells = (("north", "no"), ("north", 3), ("so$_uth$", "yes"))
    made = dataclasses.replace(release(), categories=cells, axes=("region", "vote"))
    with pytest.raises(ValueError, match=match):
        ob.Release.from_json(json.dumps({**json.loads(made.to_json()), field: value}))


#: What the schema cannot say: fields that must agree with each other, and what only the mechanism
#: knows.
AGREEMENT = {
    *("one category", "too few draws", "too many draws", "too few categories", "prior too short"),
    *("a mechanism for a public size", "unknown mechanism", "bad scale", "null scale"),
    *("text scale", "no scale", "bad noise", "an extra parameter"),
}


def changed(path, value):
    """The document of a release with one field, or one within it, set; `...` removes it."""
    document = json.loads(release(ob.LaplaceParameters(2.0)).to_json())
    inner = document
    *parents, last = path.split(".")
    for parent in parents:
        inner = inner[parent]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(document)


SCALE, NOISE = "mechanism.parameters.scale", "mechanism.parameters.noise"
INVALID = "text: is not a release in JSON: "
FIELDS = (
    "format",
    "version",
    "noisy_counts",
    "categories",
    "prior",
    "mechanism",
    "size",
    "d_in",
    "loss",
)
PARAMETERS = "does not accept these parameters: "
CORRUPTED = {
    "another format": ("format", "opendp release", "format='opendp release': must be"),
    "a later version": ("version", 4, "version=4: this package reads version 3; .*: run `pip ins"),
    "text version": ("version", "1", "version='1': this package reads version 3"),
    "an extra field": ("posterior", [1], f"{INVALID}.*unknown field `posterior`"),
    "an extra field of the loss": ("loss.alpha", 1, f"{INVALID}.*unknown field `alpha`"),
    "an extra field of the mechanism": ("mechanism.code", "x", f"{INVALID}.*unknown field `code`"),
    **{
        f"no {name}": (name, ..., f"{INVALID}.*missing required field `{name.split('.')[-1]}`")
        for name in (*FIELDS[2:], "measure", "loss.delta")
    },
    "no format": ("format", ..., "format='': must be 'opendp-bayes release'"),
    "no version": ("version", ..., "version=None: this package reads version 3"),
    "too few draws": ("noisy_counts", [3, 2], r"noisy_counts=\[3, 2\]: must be 3 integers"),
    "too many draws": ("noisy_counts", [3, 0, 2, 0], "must be 3 integers"),
    "fraction of a draw": (
        "noisy_counts",
        [3, 0.5, 2],
        r"Expected `int`, got `float` - at `\$\.noisy_counts",
    ),
    "a draw beyond any integer": (
        "noisy_counts",
        [3, 0, 10**30],
        r"Expected `int` <= .*`\$\.noisy_counts",
    ),
    "a draw beyond the machine's": (
        "noisy_counts",
        [3, 0, 2**63],
        r"Expected `int` <= .*`\$\.noisy_counts",
    ),
    "a draw as far below": (
        "noisy_counts",
        [3, 0, -(2**63) - 1],
        r"Expected `int` >= .*`\$\.noisy_counts",
    ),
    "empty categories": ("categories", [], r"`array` of length >= 1 - at `\$\.categories`"),
    "one category": ("categories", ["a"], r"categories=\['a'\]: must be at least 2, or one of se"),
    "categories repeated": (
        "categories",
        ["a", "b", "a"],
        r"categories=\[.*: must be all different",
    ),
    "too few categories": (
        "categories",
        ["a", "b"],
        r"noisy_counts=\[3, 0, 2\]: must be 2 integers",
    ),
    "null category": ("categories", ["a", "b", None], r"got `null` - at `\$\.categories"),
    "prior too short": ("prior", [1.0, 1.0], r"prior=\[1.0, 1.0\]: must be 3 numbers"),
    "prior of zero": ("prior", [1.0, 0.0, 1.0], r"Expected `float` > 0\.0 - at `\$\.prior\[1\]`"),
    "text prior": ("prior", "flat", r"Expected `array`, got `str` - at `\$\.prior`"),
    "a mechanism for a public size": ("size", None, "total='remainder': needs a public number"),
    "size of zero": ("size", 0, r"Expected `int` >= 1 - at `\$\.size`"),
    "size beyond the machine's": ("size", 2**63, r"Expected `int` <= .* - at `\$\.size`"),
    "fraction of a size": ("size", 4.5, r"Expected `int \| null`, got `float` - at `\$\.size`"),
    "distance of 0": ("d_in", 0, r"Expected `int` >= 1 - at `\$\.d_in`"),
    **{
        f"negative {name}": (f"loss.{name}", -0.5, rf">= 0\.0 - at `\$\.loss\.{name}")
        for name in ("epsilon", "rho", "range", "delta")
    },
    "delta above 1": ("loss.delta", 1.5, r"Expected `float` <= 1\.0 - at `\$\.loss\.delta`"),
    "null delta": ("loss.delta", None, r"Expected `float`, got `null` - at `\$\.loss\.delta`"),
    "unknown mechanism": ("mechanism.name", "os", r"='os': .*call load_mechanism\('os'\) first"),
    "bad scale": (SCALE, -1.0, f"laplace_parameters {PARAMETERS}scale=-1.0: must be finite"),
    "null scale": (SCALE, None, f"{PARAMETERS}scale=None: must be a number"),
    "text scale": (SCALE, "2", f"{PARAMETERS}scale='2': must be a number"),
    "no scale": (SCALE, ..., f"{PARAMETERS}.*scale"),
    "bad noise": (NOISE, "gaussian", f"{PARAMETERS}noise='gaussian': must be one of"),
    "an extra parameter": ("mechanism.parameters.gamma", 1.0, f"{PARAMETERS}.*gamma"),
    "a parameter that is a list": (SCALE, [1.0], f"{INVALID}Expected .*got `array`"),
    "mechanism as text": ("mechanism", "laplace", r"Expected `object`, got .* `\$\.mechanism`"),
    "a rule as a number": ("kept", 2, r"Expected `str`, got `int` - at `\$\.kept`"),
    "measure as a number": ("measure", 3, r"Expected `str`, got `int` - at `\$\.measure`"),
}


@pytest.mark.parametrize("name", CORRUPTED)
def test_a_corrupted_field_is_rejected_by_name(name):
    path, value, message = CORRUPTED[name]
    with pytest.raises(ValueError, match=message):
        ob.Release.from_json(changed(path, value))


def test_a_document_does_not_choose_what_is_imported(monkeypatch):
    """A mechanism of a package that is only installed is not loaded."""
    from opendp_bayes.mechanisms import registry

    monkeypatch.setattr(
        registry, "entry_points", lambda **_: pytest.fail("looked for entry points")
    )
    with pytest.raises(ValueError, match="is not built in"):
        ob.Release.from_json(changed("mechanism.name", "someone_else_s"))


@dataclasses.dataclass(frozen=True)
class Capped(ob.LaplaceParameters):
    """A mechanism of a plugin with a whole number and a Boolean among its parameters."""

    cap: int = 50
    wide: bool = True
    name: ClassVar[str] = "capped"


def test_a_whole_number_and_a_boolean_stay_so_in_a_document(monkeypatch):
    from opendp_bayes.mechanisms import registry

    monkeypatch.setitem(registry._in_documents, "capped", Capped)
    made = release(Capped(2.0, cap=7))
    read = ob.Release.from_json(made.to_json())
    assert read == made
    assert list(map(type, dataclasses.astuple(read.mechanism)[-2:])) == [int, bool]
    assert type(read.mechanism.scale) is float
    too_large = made.to_json().replace('"cap":7', f'"cap":{10**400}')
    with pytest.raises(ValueError, match="in JSON: Expected `int`"):
        ob.Release.from_json(too_large)


@pytest.mark.parametrize(
    ("mechanism", "drawn", "counts"),
    [
        (ob.LaplaceParameters(2.0), (3, -2, 4), (3, 0, 2)),
        (ob.LaplaceParameters(2.0), (4, 7, -6), (4, 5, 0)),
        (ob.LaplaceParameters(2.0, total="bounded"), (3, -2, 8), (3, 0, 5)),
        (ob.LaplaceParameters(2.0, total="private"), (3, -2, 8), (3, 0, 8)),
        (ob.KNormParameters(2.0), (5, -2, 2), (4, 0, 1)),
        (HellingerExponential(2.0), (3, 0, 2), (3, 0, 2)),
    ],
    ids=str,
)
def test_counts_are_the_projection_of_what_was_drawn(mechanism, drawn, counts):
    made = release(mechanism, drawn)
    assert made.counts == counts
    assert made.concentration.tolist() == [a + x for a, x in zip(made.prior, counts, strict=True)]
    again = ob.Release.from_json(made.to_json())
    assert (again.noisy_counts, again.counts) == (drawn, counts)


@pytest.mark.parametrize(
    "text", ["", "noisy_counts", "{", "[]", "null", "1", b"\xff\xfd", '{"format": NaN}']
)
def test_what_is_not_a_release_in_json_is_rejected(text):
    with pytest.raises(ValueError, match=r"text: .*not a result in JSON"):
        ob.Release.from_json(text)
