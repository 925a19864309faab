"""What is written by a generator and committed must be what it would write now: `make docs`."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.metrics.dashboard import dashboard
from odradek.tools.docs.api_table import api_table
from odradek.tools.docs.clients_page import clients_page
from odradek.tools.docs.configuration_page import configuration_page
from odradek.tools.docs.control_page import control_page
from odradek.tools.docs.faults_page import faults_page
from odradek.tools.docs.metrics_page import metrics_page
from odradek.tools.docs.state_diagram import pages as state_pages

pytestmark = pytest.mark.slow  # `make check` runs these, and CI does both

ROOT = Path(__file__).parents[1]


def test_configuration_page_is_current():
    assert (ROOT / "docs" / "configuration.md").read_text() == configuration_page()


def test_page_of_apis_is_current():
    assert (ROOT / "docs" / "apis.md").read_text() == api_table()


def test_page_of_metrics_is_current():
    assert (ROOT / "docs" / "metrics.md").read_text() == metrics_page()


def test_dashboard_is_current():
    assert (ROOT / "docs" / "grafana-dashboard.json").read_text() == dashboard()


def test_page_of_faults_is_current():
    assert (ROOT / "docs" / "faults.md").read_text() == faults_page()


def test_page_of_the_control_channel_is_current():
    assert (ROOT / "docs" / "control.md").read_text() == control_page()


def test_page_of_clients_is_current():
    assert (ROOT / "docs" / "clients.md").read_text() == clients_page()


@pytest.mark.parametrize(("page", "text"), state_pages().items())
def test_drawing_of_states_is_current(page, text):
    assert (ROOT / "docs" / page).read_text() == text
