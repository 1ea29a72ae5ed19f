"""A model of your own around a release, in the sampler emcee (`pip install emcee`).

The package's posterior has a Dirichlet prior. `log_likelihood` gives a release to any other model:
here the same one, to compare, and one with the knowledge that opinions go down in order.
"""

import emcee
import numpy as np

import opendp_bayes as ob

LABELS = ("for", "undecided", "against")
SEED = 0


def main() -> None:
    loss = ob.PrivacyLoss(epsilon=0.1, rho=0.005, range=0.2)
    guarantee = ob.PrivacyGuarantee(size=200, d_in=1, loss=loss, measure="MaxDivergence")
    release = ob.Release((88, 49, 63), LABELS, (1.0,) * 3, ob.KNormParameters(10.0), guarantee)
    log_likelihood = ob.log_likelihood(release)

    def log_density(free: np.ndarray, ordered: bool) -> float:
        """Density of two logarithms of ratios, where the Dirichlet(1, 1, 1) prior is `prod θ`."""
        exponents = np.append(free, 0.0)
        theta = np.exp(exponents - np.logaddexp.reduce(exponents))
        if theta.min() < 1e-12 or (ordered and np.any(np.diff(theta) > 0)):
            return -np.inf
        return float(log_likelihood(theta) + np.log(theta).sum())

    rng = np.random.default_rng(SEED)
    start = np.array([0.6, 0.3]) + 0.05 * rng.normal(size=(12, 2))
    print(f"{'':26}{'for':>16}{'undecided':>16}{'against':>16}")
    show("opendp-bayes", release.posterior.mean(), release.posterior.std())
    for name, ordered in (("emcee, the same model", False), ("emcee, in order", True)):
        sampler = emcee.EnsembleSampler(12, 2, log_density, args=[ordered])
        sampler.random_state = np.random.RandomState(SEED).get_state()
        sampler.run_mcmc(start, 250)
        free = sampler.get_chain(discard=50, flat=True)
        exponents = np.column_stack([free, np.zeros(len(free))])
        theta = np.exp(exponents - np.logaddexp.reduce(exponents, axis=1, keepdims=True))
        show(name, theta.mean(axis=0), theta.std(axis=0))


def show(name: str, means: np.ndarray, stds: np.ndarray) -> None:
    print(f"{name:26}" + "".join(f"{m:9.3f} ± {s:.3f}" for m, s in zip(means, stds, strict=True)))


if __name__ == "__main__":
    main()
