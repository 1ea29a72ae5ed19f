"""A program that makes releases while its parent process interrupts it: `python interrupted.py
NUMBER`. Run by `test_interrupts`.

It prints a line before each release, waits after it until the interrupt has come, and prints what
became of the release.
"""

import json
import sys
import time

import polars as pl
from opendp.mod import enable_features

import opendp_bayes as ob
from opendp_bayes.queries.posterior_query import PosteriorQuery
from tests.helpers.contexts import plain_context

VOTES = ["a", "b", "c", "d"] * 5000
FAR = 1000.0  # seconds


def outcome(query: PosteriorQuery[ob.Release]) -> tuple[str, bool]:
    """How one release ended, and whether there is a release to read."""
    made = None
    try:
        say("now")  # the interrupt may come before this has returned
        made = query.release()
        time.sleep(FAR)
    except ob.ReleaseInterrupted as interrupt:
        return "carried", sum(interrupt.release.counts) > 0
    except KeyboardInterrupt:
        return ("stopped" if made is None else "returned"), made is not None
    raise AssertionError("no interrupt came")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(number: int) -> None:
    enable_features("contrib", "honest-but-curious")
    mechanisms: tuple[str | ob.Mechanism, ...] = (
        "laplace_parameters",
        ob.LaplaceParameters(4.0, "floored", "private"),
    )
    with ob.on_disk(pl.DataFrame({"vote": VOTES})) as scan:
        context = plain_context(scan, loss={"epsilon": float(number)}, parts=number)
        spent = 0
        for i in range(number):
            labels = {"categories": ["a", "b", "c"], "nulls": "a", "unknown": "b"}
            query = ob.posterior(context.query(), "vote", mechanism=mechanisms[i % 2], **labels)
            how, is_there = outcome(query)
            now_spent = len(context.current_privacy_loss())
            say(json.dumps([how, is_there, now_spent - spent]))
            spent = now_spent


if __name__ == "__main__":
    main(int(sys.argv[1]))
