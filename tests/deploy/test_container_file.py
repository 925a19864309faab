"""The container file starts a command line of ours, and its health check tells well from ill."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from odradek.cli.serve import command
from odradek.testing.process.broker_process import BrokerProcess

LINES = (
    (Path(__file__).parents[2] / "deploy" / "Containerfile").read_text().replace("\\\n", "")
).splitlines()
METRICS_PORT = "9404"


def instructions(name: str) -> list[str]:
    return [line.removeprefix(name).strip() for line in LINES if line.startswith(f"{name} ")]


def test_it_starts_a_broker_that_clients_and_probes_reach() -> None:
    (entrypoint,), (default,) = instructions("ENTRYPOINT"), instructions("CMD")
    program, serve, *arguments = [*json.loads(entrypoint), *json.loads(default)]
    assert (program, serve) == ("odradek", "serve")
    options = command.read_options(arguments)
    ports = {address.rpartition(":")[2] for address in (options.listen, options.metrics)}
    assert ports == set(instructions("EXPOSE")[0].split())
    assert instructions("VOLUME") == [options.data_dir]


def test_the_broker_is_not_root_and_the_last_stage_has_no_source() -> None:
    last_stage = LINES[max(at for at, line in enumerate(LINES) if line.startswith("FROM ")) :]
    (user,) = [line for line in last_stage if line.startswith("USER ")]
    assert int(user.split()[1]) > 0
    copies = [line for line in last_stage if line.startswith(("COPY ", "ADD "))]
    assert copies == ["COPY --from=build /opt/odradek /opt/odradek"]


def test_the_health_check_passes_while_the_broker_is_well(tmp_path: Path) -> None:
    (check,) = instructions("HEALTHCHECK")
    program, *arguments = json.loads(check[check.index("[") :])
    assert program == "python3"
    (code,) = [each for each in arguments if METRICS_PORT in each]
    with BrokerProcess(tmp_path / "data", arguments=["--metrics", "127.0.0.1:0"]) as broker:
        found = re.search(r":(\d+)/", broker.metrics_urls[0])
        assert found is not None
        probe = [sys.executable, "-c", code.replace(METRICS_PORT, found[1])]
        assert subprocess.run(probe).returncode == 0
    assert subprocess.run(probe, stderr=subprocess.DEVNULL).returncode != 0
