"""Cost and memory of exponential mechanisms sampled without enumeration, and the share of proposals
that are accepted.
"""

import subprocess
import sys
from functools import partial

import numpy as np
from reporting import milliseconds, table

import opendp_bayes as ob
from opendp_bayes.mathematics.simplex import candidate
from opendp_bayes.mechanisms.exponential.posterior_exponential import candidate_distances
from opendp_bayes.samplers.coins import exact_categorical
from opendp_bayes.samplers.exponential.hellinger_candidates import HellingerSampler

#: Categories, records, and the mechanism: EHDS with a proven ε of 1 where that is of use, and EHD
#: with little noise where it is not.
RELEASES = [
    (2, 1000, ob.mechanisms.SmoothHellingerExponential(4.0)),
    (2, 10**9, ob.mechanisms.SmoothHellingerExponential(4.0)),
    (3, 1000, ob.mechanisms.SmoothHellingerExponential(4.0)),
    (3, 10**9, ob.mechanisms.SmoothHellingerExponential(4.0)),
    (10, 10**5, ob.mechanisms.HellingerExponential(1 / 150)),
    (10, 10**9, ob.mechanisms.SmoothHellingerExponential(4.0)),
    (50, 10**5, ob.mechanisms.HellingerExponential(1 / 1000)),
    (50, 10**9, ob.mechanisms.SmoothHellingerExponential(4.0)),
    (200, 10**5, ob.mechanisms.HellingerExponential(1e-4)),
]


def balanced(k: int, size: int) -> np.ndarray:
    return np.full(k, size // k) + (np.arange(k) < size % k)


def enumerated(mechanism: ob.mechanisms.HellingerExponential, counts: np.ndarray) -> list[int]:
    """One release by an exact categorical draw over all candidates."""
    prior = np.ones(counts.size)
    exponents = candidate_distances(counts, prior) / mechanism.width(counts, prior)
    return candidate(int(exact_categorical(exponents, 1)[0]), int(counts.sum()), counts.size)


def state_of(mechanism: ob.mechanisms.HellingerExponential, counts: np.ndarray) -> HellingerSampler:
    prior = np.ones(counts.size)
    return HellingerSampler(counts, prior, mechanism.width(counts, prior))


def peak(
    k: int,
    size: int,
    mechanism: ob.mechanisms.HellingerExponential | ob.mechanisms.SmoothHellingerExponential,
) -> float:
    """Peak memory in MB, above that of the imports, of one release in a process of its own
    (Linux).
    """
    code = f"""
import numpy as np
from pathlib import Path
from opendp_bayes.mechanisms import HellingerExponential, SmoothHellingerExponential
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024 / 1e6
HellingerExponential(1.0).sample([1, 1], 1.0)
before = peak()
{mechanism!r}.sample(np.full({k}, {size // k}) + (np.arange({k}) < {size % k}), 1.0)
print(peak() - before)
"""
    return float(
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
    )


def releases() -> None:
    rows = []
    for k, size, mechanism in RELEASES:
        counts = balanced(k, size)
        state = state_of(mechanism, counts)
        cold, warm = milliseconds(partial(mechanism.sample, counts, 1.0), partial(state.draw, 1))
        (many,) = milliseconds(partial(state.draw, 1000), repeats=2)
        rows.append(
            [k, f"{size:.0e}", str(mechanism), cold, warm, many / 1000, peak(k, size, mechanism)]
        )
    table(
        "One release of an exponential mechanism, without enumeration",
        ["k", "n", "mechanism", "one, ms", "a further one, ms", "one of 1000, ms", "memory, MB"],
        rows,
        "Balanced data, prior 1. `mechanism.sample(counts, prior)`, sensitivity included; a further"
        " draw from the same `HellingerSampler`; a thousand in one call; peak memory of one release"
        " above that of the imports.",
    )


def against_enumeration() -> None:
    rows = []
    for k, size, scale in (
        (2, 1000, 0.05),
        (2, 100_000, 0.05),
        (3, 100, 0.05),
        (3, 1000, 0.05),
        (4, 150, 0.05),
    ):
        counts, mechanism = balanced(k, size), ob.mechanisms.HellingerExponential(scale)
        state = state_of(mechanism, counts)
        whole, cold, warm = milliseconds(
            partial(enumerated, mechanism, counts),
            partial(mechanism.sample, counts, 1.0),
            partial(state.draw, 1),
        )
        (many,) = milliseconds(partial(state.draw, 1000), repeats=3)
        rows.append(
            [k, f"{size:,}", whole, cold, warm, many / 1000, whole / cold, 1000 * whole / many]
        )
    table(
        "Against enumeration",
        [
            "k",
            "n",
            "enumerated, ms",
            "sampled, ms",
            "a further one, ms",
            "one of 1000, ms",
            "enumerated / sampled",
            "enumerated / one of 1000",
        ],
        rows,
        "EHD with scale 0.05. Enumerated: the exponents of all candidates and one exact categorical"
        " draw.",
    )


def acceptance() -> None:
    kinds = {
        "balanced": balanced,
        "halving": lambda k, n: np.append(
            n - (n * 0.5 ** np.arange(2, k + 1)).astype(int).sum(),
            (n * 0.5 ** np.arange(2, k + 1)).astype(int),
        ),
        "in a fifth": lambda k, n: np.append(
            balanced(max(k // 5, 1), n), np.zeros(k - max(k // 5, 1), dtype=int)
        ),
        "in one": lambda k, n: n * (np.arange(k) == 0),
    }
    rows = []
    for k in (2, 3, 5, 10, 30, 50):
        shares, times = [], []
        for size in (10, 10**3, 10**5, 10**9):
            for kind in kinds.values():
                for prior in (0.01, 0.5, 1.0, 10.0):
                    for exponent in (0.5, 5.0, 50.0, 500.0, 1e4, 1e5):
                        state: list[HellingerSampler] = []
                        counts, priors = kind(k, size), np.full(k, prior)
                        made = partial(HellingerSampler, counts, priors, 1 / exponent)
                        (time,) = milliseconds(lambda: state.append(made()), repeats=1)  # noqa: B023
                        proposals, accepted = 0, 0.0
                        while accepted < 20 and proposals < 20_000:
                            accepted, proposals = (
                                accepted + float(np.exp(state[0]._inside(1024)[1]).sum()),
                                proposals + 1024,
                            )
                        shares.append(accepted / proposals)
                        times.append(time)
        batch = min(max(256, 32 * k), (1 << 18) // k)
        rows.append(
            [
                k,
                min(shares),
                float(np.quantile(shares, 0.05)),
                float(np.median(shares)),
                batch,
                float(np.exp(-batch * min(shares))),
                max(times),
            ]
        )
    table(
        "Share of proposals accepted",
        [
            "k",
            "smallest",
            "5 % quantile",
            "median",
            "batch",
            "chance of a second batch, at most",
            "slowest start, ms",
        ],
        rows,
        "384 cases for each k: 10 to 1e9 records, balanced, halving, in a fifth of the categories"
        " or in one, prior 0.01 to 10, largest exponent 0.5 to 1e5. A batch is proposed at once"
        " even if one release is asked for, so that rejections seldom show in its time.",
    )


def main() -> None:
    releases()
    against_enumeration()
    acceptance()


if __name__ == "__main__":
    main()
