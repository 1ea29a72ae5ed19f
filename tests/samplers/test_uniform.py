"""Random words, and logarithms of uniform numbers from bits that are known."""

import math
import secrets

import numpy as np
import pytest

from opendp_bayes.samplers import uniform


def are_of_the_system(monkeypatch: pytest.MonkeyPatch) -> bool:
    """True if words are the bytes that `secrets` gives, all of them and no others."""
    given = b"".join(map(secrets.token_bytes, (24, 8)))
    rest = bytearray(given)

    def token_bytes(number: int) -> bytes:
        taken = bytes(rest[:number])
        del rest[:number]
        return taken

    with monkeypatch.context() as patch:
        patch.setattr(secrets, "token_bytes", token_bytes)
        found = b"".join(uniform.random_words(number).tobytes() for number in (3, 1))
    return found == given and not rest


def test_words_are_those_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    assert are_of_the_system(monkeypatch)
    assert len(set(uniform.random_words(1000).tolist())) == 1000  # 2^-44 that two agree


@pytest.mark.parametrize("seeds", [[7, 7], [7, None]], ids=["in every call", "in the first"])
def test_words_of_a_seed_are_noticed(seeds, monkeypatch):
    """The negative control: a generator that is seeded once, or anew in every call."""
    generators = iter([np.random.default_rng(seed) for seed in seeds])

    def words(number: int) -> np.ndarray:
        return np.frombuffer(next(generators).bytes(8 * number), dtype=np.uint64)

    monkeypatch.setattr(uniform, "random_words", words)
    assert not are_of_the_system(monkeypatch)


@pytest.mark.parametrize("bound", [2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70])
def test_integers_below_bounds_around_machine_integers(bound: int) -> None:
    """That all are below half of the bound has a chance of 2^-64."""
    found = uniform.uniform_below(bound, 64).tolist()
    assert 0 <= min(found) <= max(found) < bound
    assert max(found) >= bound // 2


@pytest.mark.parametrize(
    ("halving", "rest", "value"),
    [(1, 0, (1 + 2.0**-53) / 2), (1, 2**64 - 1, 1 - 2.0**-54), (4, 0, (1 + 2.0**-53) / 4 / 2)],
)
def test_a_number_is_in_the_middle_of_those_that_its_bits_leave(halving, rest, value, monkeypatch):
    """The bits of `rest` follow the first one, after so many zeros."""
    words = [halving, rest]
    monkeypatch.setattr(
        uniform, "random_words", lambda number: np.array([words.pop(0)], dtype=np.uint64)
    )
    (found,) = uniform.log_uniforms(1)
    zeros = halving.bit_length() - 1
    half = 0.5 + (rest >> 12)
    assert found == math.log1p(half * 2.0**-52) - (zeros + 1) * math.log(2)
    assert found <= 0
    assert math.exp(found) == pytest.approx(value, rel=1e-15)
