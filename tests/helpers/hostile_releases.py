"""A program that imports every module and releases twice of each kind in a process whose settings
do not mean well, and writes losses and draws to a file: `python -m tests.helpers.hostile_releases
FILE`.
"""

import decimal
import importlib
import json
import locale
import os
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl

import opendp_bayes as ob
from tests.helpers.contexts import checked_context

#: Text that no output may hold but the file.
MARKED = "zzmarked"
RECURSION = 400
MECHANISMS: tuple[Any, ...] = (
    ob.GaussianParameters(4.0),
    ob.mechanisms.HellingerExponential(0.5),
    ob.KNormParameters(4.0),
    ob.LaplaceParameters(4.0, total="private"),
    ob.mechanisms.PermuteAndFlip(0.5),
    ob.mechanisms.SmoothHellingerExponential(2.0, gamma=1.0),
)


def hostile() -> None:
    """Everything that a caller's process may have changed."""
    np.seterr(all="raise")
    decimal.setcontext(decimal.Context(prec=3, traps=list(decimal.Context().traps)))
    for name in ("de_DE.UTF-8", "tr_TR.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_ALL, name)
        except locale.Error:
            continue
        break
    warnings.simplefilter("error")
    sys.setrecursionlimit(RECURSION)
    os.close(1)
    sys.stdout.close()


def import_everything() -> None:
    """Every module, some of which are usually imported after the caller's `np.seterr`."""
    import scipy.optimize
    import scipy.signal
    import scipy.sparse
    import scipy.stats  # noqa: F401

    np.seterr(all="raise")
    package = Path(ob.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if path.stem != "__main__":
            parts = path.relative_to(package.parent).with_suffix("").parts
            importlib.import_module(".".join(parts).removesuffix(".__init__"))


def from_a_seed() -> dict[str, Any]:
    """What is released after a caller has set every seed that there is."""
    random.seed(1)
    np.random.seed(1)
    return described(releases())


def frame() -> pl.DataFrame:
    rows = [("abc"[i % 3], "ns"[i % 2], MARKED if i == 7 else f"k{i % 2}") for i in range(300)]
    schema: Any = {"vote": pl.Enum(["a", "b", "c"]), "town": pl.Enum(["n", "s"]), "key": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def context(measure: str, **more: Any) -> Any:
    loss = {
        "epsilon": {"epsilon": 1.0},
        "rho": {"rho": 0.2},
        "approximate": {"epsilon": 1.0, "delta": 1e-6},
        "concentrated": {"rho": 0.2, "delta": 1e-6},
    }[measure]
    return checked_context(frame().lazy(), more or {"contributions": 1}, loss, None).query(**loss)


def releases() -> dict[str, Any]:
    """Of each kind: what was promised, and what was drawn."""
    made: dict[str, Any] = {}
    for mechanism in MECHANISMS:
        query = context("rho" if "Gaussian" in str(mechanism) else "epsilon", changes=1)
        asked = ob.posterior(query, "town", nulls="n", size=300, mechanism=mechanism)
        made[mechanism.name] = asked.release()
    how: dict[str, Any] = {"nulls": ob.DROP}
    made["joint"] = ob.posterior(context("epsilon"), ["vote", "town"], **how).release()
    made["groups"] = ob.posterior(context("rho"), "vote", by="town", **how).release()
    for measure in ("approximate", "concentrated"):
        asked = ob.discover(context(measure), "key", rest=0.2, **how)
        made[f"discovery under {measure}"] = asked.release()
    questions = {"v": {"column": "vote", **how}, "t": {"column": ["town", "vote"], **how}}
    survey = ob.survey(context("epsilon"), questions).release()
    made |= {f"survey {name}": one for name, one in survey.items()}
    return made


def described(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Of each release its loss and law as text, and what was drawn."""
    found = {}
    for name, one in made.items():
        loss = one.guarantee.loss
        law = getattr(one, "mechanism", None) or one.discovery
        loss_of_one = repr((loss.epsilon, loss.rho, loss.range, loss.delta))
        found[name] = {"loss": loss_of_one, "law": repr(law), "document": len(one.to_json()) > 100}
        found[name]["noisy_counts"] = repr(one.noisy_counts)
    return found


if __name__ == "__main__":
    dp.enable_features("contrib", "honest-but-curious")
    import_everything()
    hostile()
    from tests.helpers.coarsened import coarsen  # what it imports is loaded by a hostile process

    coarsen(setattr)
    Path(sys.argv[1]).write_text(json.dumps([from_a_seed(), from_a_seed()]), encoding="utf-8")
