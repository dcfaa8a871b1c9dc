"""Reduce the Colorado monthly records to the small file that the package carries.

The records come with the R package `fields` as the data set COmonthlyMet, in a file that holds more than a megabyte:

    apt-get download r-cran-fields && dpkg -x r-cran-fields_*.deb fields
    pip install rdata
    python tools/make_weather.py fields/usr/lib/R/site-library/fields/data/COmonthlyMet.rda \\
        mtbo_nb/data/colorado_weather.csv.gz

The result does not depend on when or where this runs. See mtbo_nb/data/colorado_weather.txt for what is in it.
"""

import argparse
import csv
import gzip
import io
from pathlib import Path

import numpy as np
import rdata

YEARS = (1961, 1990)  # a climate normal
MIN_YEARS = 25  # complete years that a station must have
WEST, EAST, SOUTH, NORTH = -109.06, -102.04, 36.99, 41.01  # the state of Colorado
COLUMNS = ["station", "name", "lon", "lat", "elevation_m", "year", "tmax_C", "tmin_C", "precip_mm"]


def yearly(records: dict) -> tuple[np.ndarray, np.ndarray]:
    """Years (Y,) and one reading per year and station (Y, S, 3), NaN where one of the twelve months is missing."""
    years = np.asarray(records["CO.years"])
    inside = (years >= YEARS[0]) & (years <= YEARS[1])
    tmax, tmin, rain = (np.asarray(records[f"CO.{v}"])[inside] for v in ("tmax", "tmin", "ppt"))
    # `fields` says that precipitation is in millimetres; Boulder's 45 a year can only be centimetres
    readings = np.stack([tmax.mean(1), tmin.mean(1), 10 * rain.sum(1)], axis=-1)
    readings[np.isnan(readings).any(-1)] = np.nan
    return years[inside], readings


def rows(records: dict):
    """One row of COLUMNS for each station and complete year, by station number and year."""
    years, readings = yearly(records)
    lon, lat = records["CO.loc"].to_numpy().T
    complete = ~np.isnan(readings[..., 0])
    keep = (complete.sum(0) >= MIN_YEARS) & (lon > WEST) & (lon < EAST) & (lat > SOUTH) & (lat < NORTH)
    for s in sorted(np.flatnonzero(keep), key=lambda s: records["CO.id"][s]):
        where = [records["CO.id"][s], records["CO.names"][s].strip().title(), f"{lon[s]:.2f}", f"{lat[s]:.2f}"]
        for year, (high, low, rain) in zip(years[complete[:, s]], readings[complete[:, s], s], strict=True):
            yield [*where, f"{records['CO.elev'][s]:.0f}", year, f"{high:.2f}", f"{low:.2f}", f"{rain:.0f}"]


def main() -> None:
    """Read the .rda, write the .csv.gz."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rda", type=Path, help="COmonthlyMet.rda")
    parser.add_argument("out", type=Path, help="the .csv.gz to write")
    args = parser.parse_args()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows(rdata.read_rda(args.rda)))
    args.out.write_bytes(gzip.compress(text.getvalue().encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    main()
