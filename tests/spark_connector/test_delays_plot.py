"""The summary and the picture at the demo's end."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.image import imread

from odradek.spark_connector.demo.delays_plot import plot_delays, summarise_airlines
from odradek.spark_connector.demo.flight_delays import TABLE_COLUMNS


def delays(rows: list[tuple[object, ...]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(TABLE_COLUMNS))
    table["hour"] = pd.to_datetime(table["hour"], utc=True)
    return table


TWO_AIRLINES = [
    ("AA", "American", "2013-01-01T10:00Z", 10, 2, 8, 80, 16, 10.0, 2.0),
    ("AA", "American", "2013-01-01T11:00Z", 4, 0, 4, 4, 8, 1.0, 2.0),
    ("HA", "Hawaiian", "2013-01-01T11:00Z", 1, 1, 0, 0, 0, None, None),
]


def test_airlines_are_summed_up_by_flights_not_by_hours() -> None:
    hawaiian, american = summarise_airlines(delays(TWO_AIRLINES))
    assert american.flights == 14
    assert american.cancelled_percent == pytest.approx(100 * 2 / 14)
    assert american.mean_departure_delay == pytest.approx((80 + 4) / 12)
    assert american.mean_arrival_delay == pytest.approx(24 / 12)
    assert (hawaiian.cancelled_percent, hawaiian.mean_departure_delay) == (100.0, 0.0)


def test_a_picture_is_drawn_even_of_little(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "delays.png"
    plot_delays(delays(TWO_AIRLINES), path)
    picture = imread(path)
    assert picture.shape[1] > 1000
    assert len({tuple(pixel) for pixel in picture[::40, ::40].reshape(-1, 4).round(2)}) > 3
