"""docs/performance.md: its tables are those of the figures beside it, and how those are made."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from odradek.tools.benchmarks.profiling.account import filled_page, load
from odradek.tools.benchmarks.profiling.flame import flame_graph
from odradek.tools.benchmarks.profiling.samples import parse
from odradek.tools.benchmarks.profiling.stages import by_stage, in_microseconds

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
GRAPH_BYTES_MAX = 150_000
OUTSIDE = "_run_module_as_main (<frozen runpy>:173);main (odradek/cli/main.py:13);"
LOOP = "run (trio/_core/_run.py:2424);EpollTransport.run (odradek/broker/epoll_transport.py:150)"
RAW = f"""\
{OUTSIDE}{LOOP};select_epoll_poll (selectmodule.c.h:841);epoll_wait (libc.so.6) 30
{OUTSIDE}{LOOP};send_buffers (odradek/broker/send_buffers.py:9);sock_send (socketmodule.c:4207);\
send (libc.so.6) 10
{OUTSIDE}{LOOP};ProduceShortcut.take (odradek/broker/produce_shortcut.py:112) 6
{OUTSIDE}{LOOP};ProduceShortcut.take (odradek/broker/produce_shortcut.py:112);\
helper (odradek/unheard/of.py:1) 2
thread_run (libpython3.11.so.1.0);WorkerThread._work (trio/_core/_thread_cache.py:209) 50
"""


def test_the_tables_are_those_of_the_figures() -> None:
    page = PAGE.read_text()
    assert filled_page(page, load(PAGE.parent / "performance" / "figures.json")) == page


def test_every_graph_of_the_page_is_there_and_small() -> None:
    graphs = re.findall(r"\((performance/[\w-]+\.svg)\)", PAGE.read_text())
    assert len(graphs) >= 10
    for graph in graphs:
        path = PAGE.parent / graph
        assert path.stat().st_size < GRAPH_BYTES_MAX
        ElementTree.parse(path)


def test_samples_outside_the_loop_do_not_count() -> None:
    assert sum(parse(RAW).values()) == 48


def test_what_the_kernel_does_and_what_we_do_are_measured_apart() -> None:
    costs = in_microseconds(parse(RAW), user_us=4.0, kernel_us=20.0)
    assert by_stage(costs) == {
        "epoll": [0, pytest.approx(15)],
        "send": [0, pytest.approx(5)],
        "decode, or shortcut": [pytest.approx(4), 0],
    }


def test_a_graph_is_as_wide_as_its_costs() -> None:
    costs = {("run trio/a.py", "send (kernel)"): 3.0, ("run trio/a.py",): 1.0}
    drawn = ElementTree.fromstring(flame_graph(costs, "a load <of> two"))
    widths = {
        group[0].text: float(group[1].attrib["width"])
        for group in drawn.iter("{http://www.w3.org/2000/svg}g")
    }
    whole = widths["run trio/a.py: 4.0 us (trio)"]
    (send,) = (width for name, width in widths.items() if name and name.startswith("send"))
    assert send == pytest.approx(whole * 3 / 4, rel=0.01)
