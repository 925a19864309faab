"""What is written by a generator and committed must be what it would write now: `make docs`."""

from __future__ import annotations

from pathlib import Path

from odradek.tools.docs import consumer_group_diagram as consumer_diagram
from odradek.tools.docs import controller_diagram, transaction_diagram
from odradek.tools.docs import group_diagram as diagram
from odradek.tools.docs.api_table import api_table
from odradek.tools.docs.configuration_page import configuration_page
from odradek.tools.docs.faults_page import faults_page
from odradek.tools.docs.metrics_page import metrics_page
from odradek.tools.docs.stubs import PACKAGES, stub_files

ROOT = Path(__file__).parents[1]


def test_configuration_page_is_current():
    assert (ROOT / "docs" / "configuration.md").read_text() == configuration_page()


def test_page_of_apis_is_current():
    assert (ROOT / "docs" / "apis.md").read_text() == api_table()


def test_page_of_metrics_is_current():
    assert (ROOT / "docs" / "metrics.md").read_text() == metrics_page()


def test_page_of_faults_is_current():
    assert (ROOT / "docs" / "faults.md").read_text() == faults_page()


def test_drawing_of_group_states_is_current():
    assert (ROOT / "docs" / "group_states.md").read_text() == diagram.render()
    drawn = consumer_diagram.render()
    assert (ROOT / "docs" / "consumer_group_states.md").read_text() == drawn
    drawn = transaction_diagram.render()
    assert (ROOT / "docs" / "transaction_states.md").read_text() == drawn
    drawn = controller_diagram.render()
    assert (ROOT / "docs" / "controller_states.md").read_text() == drawn


def test_stubs_are_current_and_none_is_left_over():
    for package in PACKAGES:
        folder = Path(str(package.__file__)).parent
        committed = {path.name: path.read_text() for path in folder.glob("*.pyi")}
        assert committed == stub_files(package)
