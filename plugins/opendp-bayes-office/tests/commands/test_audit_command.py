"""`opendp-bayes audit`, in process through typer's runner."""

import json
import re
from functools import partial

import pytest

from opendp_bayes.mechanisms.registry import BUILT_IN
from opendp_bayes_office.commands.app import app
from tests.helpers import command_line

pytestmark = pytest.mark.usefixtures("_plain_terminal")
run = partial(command_line.run, of=app)

EHDL = ("hellinger_exponential", "--parameter", "sensitivity=local")


def document(*arguments: object, code: int = 0) -> dict[str, object]:
    found = json.loads(run("audit", *arguments, "--draws", 1000, "--json", code=code))
    assert isinstance(found, dict)
    return found


def test_an_audit_that_passes_is_shown_as_tables() -> None:
    shown = run(
        "audit",
        "smooth_hellinger_exponential",
        "--size",
        20,
        "--prior",
        "1,1",
        "--scale",
        4,
        "--draws",
        5000,
    )
    for line in (
        r"Audit of SmoothHellingerExponential\(scale=4, gamma=1\)",
        r"20 records, prior \(1, 1\)\. Neighbours differ by one record changed\.",
        r"Nominal, the papers' calibration +1\b",
        r"Proven, closed form +0\.6036",
        r"Exact accounting \(exact\) +0\.3197",
        r"Claimed +0\.3197",
        r"1e-06 +0\.3197",
        r"Accounting +passes +The largest loss from the probabilities is 0\.3196\.",
        (
            r"Law +passes +The largest log-ratio over all 20 pairs of neighbours is 0\.3196, for"
            r" counts \(1,19\) and \(2,18\)\."
        ),
        (
            r"Draws +passes +5000 draws for each of \(1,19\) and \(2,18\) refute no more than is"
            r" claimed\."
        ),
        r"Fit +passes +The smallest p-value is ",
        r"Passed: ε = 0\.3197 is certified, and nothing refutes it\.",
    ):
        assert re.search(line, shown), f"{line} is not in\n{shown}"


def test_a_refuted_claim_ends_with_exit_code_1() -> None:
    shown = run(
        "audit",
        *EHDL,
        "--size",
        500,
        "--prior",
        "0.01,0.01",
        "--scale",
        2,
        "--epsilon",
        1,
        "--draws",
        1000,
        code=1,
    )
    assert re.search(r"Proven, closed form +∞ +∞ +∞", shown)
    assert re.search(r"Exact accounting \(windowed\) +1\.104", shown)
    assert re.search(r"Accounting +fails +The largest loss from the probabilities is 1\.103", shown)
    assert "Failed: accounting, law. The claim of ε = 1 does not hold as stated." in shown


def test_a_claim_that_nothing_proves_is_not_called_certified() -> None:
    """A mechanism of another package has no exact accounting, and its proven bound is 2 / scale."""
    shown = run(
        "audit",
        "hamming_exponential",
        "--size",
        20,
        "--prior",
        "1,1",
        "--scale",
        2,
        "--epsilon",
        0.95,
        "--draws",
        1000,
    )
    assert (
        "Passed, but not proven: nothing refutes ε = 0.95, and no certified bound is as small."
        in shown
    )
    assert "There is no exact accounting for this mechanism and size." in shown
    assert re.search(r"Nominal, the papers' calibration +– ", shown)


def test_without_listed_outcomes_two_checks_are_left() -> None:
    shown = run("audit", "laplace_parameters", "--prior", "1,1,1", "--epsilon", 1, "--draws", 1000)
    assert "A private number of records" in shown
    assert "one record added or removed" in shown
    assert re.search(r"Law +– +The mechanism does not list its outcomes\.", shown)
    assert re.search(r"Fit +– ", shown)
    assert "(0,0,0) and (1,0,0) and for (10,10,10) and (11,10,10)" in shown


def test_the_scale_follows_from_epsilon() -> None:
    found = document("hellinger_exponential", "--size", 10, "--prior", "1,1", "--epsilon", 1)
    assert found["mechanism"]["parameters"]["scale"] < 0.5  # type: ignore[index]
    assert found["epsilon"] == 1
    assert 1 - 1e-6 < found["exact"]["epsilon"] <= 1  # type: ignore[index]


def test_as_json() -> None:
    found = document(
        *EHDL,
        "--size",
        10,
        "--prior",
        "1,2",
        "--scale",
        2,
        "--epsilon",
        0.1,
        "--delta",
        0.01,
        "--confidence",
        0.99,
        code=1,
    )
    assert found["mechanism"] == {
        "name": "hellinger_exponential",
        "parameters": {"scale": 2.0, "sensitivity": "local"},
    }
    assert (found["size"], found["prior"], found["draws"], found["confidence"]) == (
        10,
        [1.0, 2.0],
        1000,
        0.99,
    )
    assert [claim["delta"] for claim in found["claims"]] == [0.0, 0.01]  # type: ignore[attr-defined]
    assert found["failures"][:2] == ["accounting", "law"]  # type: ignore[index]
    assert found["proven"]["epsilon"] is None  # type: ignore[index]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "laplace_parameters --size 9 --prior 1,1",
            "--scale, --epsilon: neither is given",
        ),
        (
            "laplace_parameters --size 9 --prior 1 --scale 1",
            r"prior=1.0: .*for each category",
        ),
        (
            "laplace_parameters --size 9 --prior x,1 --scale 1",
            r"--prior x,1: .*separated by commas",
        ),
        ("laplace_parameters --size 0 --prior 1,1 --scale 1", r"size=0: must be between 1"),
        (
            "laplace_parameters --size 9 --prior 1,1 --scale -1",
            r"scale=-1.0: .*greater than 0",
        ),
        (
            "laplace_parameters --size 9 --prior 1,1 --epsilon 0",
            r"epsilon=0.0: .*greater than 0",
        ),
        (
            "laplace_parameters --size 9 --prior 1,1 --scale 1 --draws 5",
            r"draws=5: .*between 1000 and 10000000",
        ),
        (
            "laplace_parameters --size 9 --prior 1,1 --scale 1 --draws 100000000000",
            r"draws=100000000000: must be between",
        ),
        (
            "laplace_parameters --size 9 --prior 1,1 --scale 1 --delta 2",
            r"delta=2.0: .*between 0 and 1",
        ),
        (
            "laplace_parameters --size 9 --prior 1,1 --scale 1 --confidence 1",
            r"confidence=1.0: .*between 0 and 1",
        ),
        (
            "laplace_parameters --size 9 --prior 1,1 --scale 1 --parameter gamma=1",
            r"--parameter gamma: .*of noise, total",
        ),
        (
            "knorm_parameters --size 9 --prior 1,1 --scale 1 --parameter gamma=1",
            r"--parameter gamma: .*it has none",
        ),
        (
            "laplace_parameters --size 9 --prior 1,1 --scale 1 --parameter noise=loud",
            r"noise='loud': .*'discrete', 'floored'",
        ),
        (
            "laplce_parameters --size 9 --prior 1,1 --scale 1",
            r"MECHANISM 'laplce_parameters': .* you mean 'laplace_parameters'",
        ),
        ("hellinger_exponential --prior 1,1 --scale 1", "records must be public"),
    ],
)
def test_wrong_options_end_in_one_line_and_exit_code_2(options: str, message: str) -> None:
    shown = run("audit", *options.split(), code=2)
    assert len(shown.splitlines()) == 1
    with pytest.raises(ValueError, match=message):
        raise ValueError(shown)


def test_without_a_finite_epsilon_the_verdict_is_on_rho() -> None:
    setting = ("--size", 20, "--prior", "1,1", "--scale", 2, "--draws", 2000)
    shown = run("audit", "gaussian_parameters", *setting)
    assert "Passed: ρ = 0.25 is certified" in shown


def test_the_help_names_every_mechanism_of_the_package() -> None:
    shown = run("audit", "--help")
    assert all(kind.name in shown for kind in BUILT_IN)
