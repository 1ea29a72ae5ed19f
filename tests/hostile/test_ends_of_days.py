"""A time is of the day that it is in, up to its last instant, in every statistical file."""

from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from opendp_bayes_office.files.files import read

#: Of each file: its ending, the format of a time, the first day from which it counts, and in which
#: part of a second.
FILES = {
    "SPSS": (".sav", "DATETIME20", datetime(1582, 10, 14), 1),
    "Stata": (".dta", "%tc", datetime(1960, 1, 1), 1000),
    "SAS": (".xpt", "DATETIME20.", datetime(1960, 1, 1), 1),
}
DAYS = (datetime(1959, 12, 31), datetime(1969, 12, 31), datetime(1970, 1, 1), datetime(2024, 2, 29))
#: Thousandths of a second from the beginning of the day, or of the next.
INSTANTS = (0, 0.4, 0.6, 999.7, 86_399_000, 86_399_999.4, 86_399_999.5, 86_399_999.6, 86_399_999.9)


@pytest.mark.parametrize("kind", FILES)
def test_the_last_half_millisecond_of_a_day_is_of_that_day(kind: str, tmp_path: Path) -> None:
    pandas, pyreadstat = map(pytest.importorskip, ("pandas", "pyreadstat"))
    ending, form, start, unit = FILES[kind]
    values, wanted = [], []
    for day in DAYS:
        for instant in INSTANTS:
            whole = (day - start) // timedelta(milliseconds=1)
            value = float((whole + Fraction(instant)) / 1000 * unit)
            values.append(value)
            passed = Fraction(value) * 1000 // unit
            wanted.append((start + timedelta(milliseconds=int(passed))).replace(microsecond=0))
    path = tmp_path / f"t{ending}"
    write = {".sav": "write_sav", ".dta": "write_dta", ".xpt": "write_xport"}[ending]
    frame = pandas.DataFrame({"t": values})
    getattr(pyreadstat, write)(frame, str(path), variable_format={"t": form})
    times = read(path)["t"]
    assert times.dtype == pl.Datetime("ms")
    assert times.to_list() == wanted
