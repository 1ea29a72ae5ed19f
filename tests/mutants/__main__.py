"""Plant mistakes in the code, one at a time, and see which ones no test catches.

`make mutants` runs this; cosmic-ray makes the mistakes. `targets.toml` says what is mutated and
which tests belong to it, `equivalent.toml` which mistakes change no result, with the reason. What
was tried is kept in `.mutants/`: a run that is stopped goes on where it was, and what no test
noticed is tried again in the next. The result is a table there, `report.md`.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import tomllib
from cosmic_ray.work_db import WorkDB, use_db

from tests.mutants.planting import KEPT, Module, chosen, try_area
from tests.mutants.report import Tried, tried, written
from tests.mutants.running import PROJECT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="make mutants")
    parser.add_argument("--number", type=int, default=0, help="mistakes of each module; 0: all")
    parser.add_argument("--only", default="", help="part of the path of the modules to try")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--report", action="store_true", help="write the table, try nothing")
    arguments = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    areas = tomllib.loads((Path(__file__).parent / "targets.toml").read_text())["area"]
    modules = [Module(path) for area in areas for path in area["modules"]]
    if not arguments.report:
        with ProcessPoolExecutor(arguments.processes, get_context("spawn")) as pool:
            for result in [
                pool.submit(try_area, area, arguments.number, arguments.only)
                for area in areas
                if any(arguments.only in path for path in area["modules"])
            ]:
                result.result()
    found = [each for module in modules if (each := _seen(module))]
    missing = [module.path for module in modules if not module.latest]
    (KEPT / "report.md").write_text(written(found, missing))


def _seen(module: Module) -> Tried | None:
    """What the mistakes of a module came to that were tried."""
    session = module.latest
    if session is None:
        return None
    changed = session != module.session
    source = "" if changed else (PROJECT / module.path).read_text()
    with use_db(str(session), WorkDB.Mode.open) as db:
        items = {item.job_id: item.mutations[0] for item in chosen(db, 0, source)}
        results = [(items[job], result) for job, result in db.results if job in items]
    return tried(module.path, len(items), results, changed=changed)


if __name__ == "__main__":
    main()
