# One door for every habit; `make` alone lists them. Needs Python 3.11 or newer and make.
#
# A stamp in .venv says what is installed there; it is as old as the files that decide that,
# so a second `make run` starts at once.

PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3 python3.14 python; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo "$$name"; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
MANIFEST := pyproject.toml setup.cfg constraints.txt
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# What a build leaves in the checkout would be found before what is installed: pytest then takes
# __main__.py for a plugin's module, and warns at each run that it cannot be rewritten.
FORGET_BUILD := rm -rf odradek.egg-info
PYTEST := $(BIN)/python -m pytest
MYPY_PATH := .cache/mypy-path
SHORT := -m 'not slow and not soak'
# Conformance has a goal of its own, which plays the scenarios of these in every version.
SLOW := -m 'slow and not soak' --deselect tests/interop/test_conformance.py \
	--deselect tests/interop/test_authorization_conformance.py
SPREAD := --dist loadfile --no-loadscope-reorder
WORKERS := -n 4 $(SPREAD)
# Slow tests wait for longer: for sessions that end, JVMs that start, brokers that are frozen.
SLOW_WORKERS := -n 5 $(SPREAD)
# A test that not even its timeout ends takes its worker with it, and the stacks are shown.
NO_HANGING := -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true
# Since 3.12 the interpreter itself tells which lines ran, at next to no cost.
COVERAGE = COVERAGE_FILE=$(CURDIR)/.cache/coverage/data COVERAGE_CORE=$(shell $(BIN)/python -c 'import sys; print("ctrace" if sys.version_info < (3, 12) else "sysmon")')
FUZZ_SECONDS ?= 60
KAFKA := tests/interop/java
NEWEST_SPARK := .cache/newest-spark
KERBEROS := .cache/kerberos
FUZZ_TARGETS := frames requests responses round_trip internal records decompression
# What has a goal of its own: each ends with an error where it is missed.
BENCHMARKS := codec ready_time record_walk produce_cpu noisy_neighbours spark_sources \
	storage.append storage.lookup storage.partitions storage.read storage.recovery \
	cluster.create_topics cluster.idle cluster.processes cluster.controller_failover cluster.replication_catch_up \
	cluster.replication_failover cluster.replication_throughput cluster.update_metadata \
	coordinator.group_heartbeats coordinator.group_rebalance coordinator.transactions_rate

.DEFAULT_GOAL := help
.PHONY: help run demo test test-slow test-newest-spark test-kerberos test-container test-all coverage interop conformance soak fuzz check format docs site bench bench-growth bench-worst bench-goals bench-codec long-run profiles wheel smoke fetch clean

help:
	@echo 'make run      start a broker (ARGS="--listen 127.0.0.1:9093" passes options on)'
	@echo 'make demo     flights through Kafka and Spark: produce, aggregate, check, plot'
	@echo 'make test     units, Python clients, a little of clusters and Spark; under 5 minutes'
	@echo 'make test-all every test but the soaks, and conformance; under an hour'
	@echo 'make test-slow  what make test leaves out of make test-all, but for conformance'
	@echo 'make test-newest-spark  what needs no connector, on the newest PySpark'
	@echo 'make test-kerberos  logins by Kerberos, against MIT'\''s KDC'
	@echo 'make test-container  the image of deploy/Containerfile, built and started'
	@echo 'make coverage make test, and the share of lines that it runs, in brokers too'
	@echo 'make interop  clients of other languages alone'
	@echo 'make conformance  scripted scenarios on Apache Kafka and on odradek, compared'
	@echo 'make soak     the full seeded and random runs'
	@echo 'make fuzz     atheris over the decoders, FUZZ_SECONDS=60 for each of its targets'
	@echo 'make check    format, lint, types, architecture; under a minute'
	@echo 'make format   format the code'
	@echo 'make docs     write the generated pages anew'
	@echo 'make site     the pages of docs/ as a site, in build/site; ARGS=serve to look while writing'
	@echo 'make bench    odradek beside Apache Kafka and kfake on this machine, in turns'
	@echo 'make bench-growth  cost as connections, partitions, segments and groups grow, plotted'
	@echo 'make bench-worst   the worst request of every API, and how long others wait for it'
	@echo 'make bench-goals  what each part costs, beside its goal'
	@echo 'make long-run  two hours of mixed load: memory and descriptors stay; ARGS="--brokers 3 --restart-minutes 5"'
	@echo 'make profiles  where the time of a Produce and a Fetch goes: docs/performance.md'
	@echo 'make bench-codec  our codecs beside kafka-python and construct'
	@echo 'make wheel    build dist/odradek-*.whl'
	@echo 'make smoke    build it, and try it from an empty folder'
	@echo 'make fetch    fetch what tests take from registries, so that none waits for a network'
	@echo 'make clean    remove .venv and everything that was built; data folders stay'

# --- What is installed -----------------------------------------------------------------------

$(BIN)/python:
	@test -n "$(PYTHON)" || { printf '%s\n' 'odradek needs Python 3.11 or newer: install one, or' \
		'name it, as in `make PYTHON=/path/to/python3.11 run`.' >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { printf '%s\n' \
		"$(PYTHON) cannot make virtual environments: install its venv package" \
		'(on Debian and Ubuntu: apt install python3-venv).' >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)
	@$(PIP) install --upgrade -c constraints.txt pip

# One stamp for each set of packages; a larger set counts as the smaller ones too.
$(VENV)/run.stamp: $(MANIFEST) | $(BIN)/python
	@echo 'Installing odradek into .venv (once)...' >&2
	@$(PIP) install -c constraints.txt -e . && $(FORGET_BUILD)
	@touch $@

$(VENV)/demo.stamp: $(MANIFEST) | $(BIN)/python
	@echo 'Installing odradek, Spark and what the demo needs into .venv (once)...' >&2
	@$(PIP) install -c constraints.txt -e '.[demo]' && $(FORGET_BUILD)
	@touch $(VENV)/run.stamp $@

$(VENV)/test.stamp: $(MANIFEST) | $(BIN)/python
	@echo 'Installing odradek and what its tests need into .venv (once)...' >&2
	@$(PIP) install -c constraints.txt -e '.[test]' && $(FORGET_BUILD)
	@touch $(VENV)/run.stamp $(VENV)/demo.stamp $@

$(VENV)/fuzz.stamp: $(VENV)/test.stamp
	@$(PIP) install -c constraints.txt -e '.[fuzz]' && $(FORGET_BUILD)
	@touch $@

$(VENV)/profile.stamp: $(VENV)/test.stamp
	@$(PIP) install -c constraints.txt -e '.[profile]' && $(FORGET_BUILD)
	@touch $@

# The newest PySpark lies beside .venv, in a folder that is put in front of it.
$(NEWEST_SPARK)/installed.stamp: constraints-newest-spark.txt $(VENV)/test.stamp
	@echo 'Installing the newest PySpark into $(NEWEST_SPARK) (once)...' >&2
	@rm -rf $(NEWEST_SPARK)
	@$(PIP) install --no-deps --target $(NEWEST_SPARK) -r constraints-newest-spark.txt
	@touch $@

# So do the packages for Kerberos, Python's and KafkaJS', which are compiled: without them all else is
# tested as most have it.
# node-gyp is told of Node's headers where Node brought them: else it fetches them.
$(KERBEROS)/installed.stamp: NODE_HEADERS = node=$$(dirname "$$(dirname "$$(readlink -f "$$(command -v node)")")"); \
	[ ! -e "$$node/include/node/node.h" ] || export npm_config_nodedir="$$node";
$(KERBEROS)/installed.stamp: $(MANIFEST) tests/kerberos/node/package-lock.json $(VENV)/test.stamp
	@PYTHON=$(BIN)/python .ci/need cc c++ krb5-config Python.h node npm
	@echo 'Compiling the packages for Kerberos into $(KERBEROS) (once)...' >&2
	@rm -rf $(KERBEROS)
	@$(PIP) install --target $(KERBEROS) -c constraints.txt gssapi
	@mkdir $(KERBEROS)/node && cp tests/kerberos/node/*.json $(KERBEROS)/node
	@cd $(KERBEROS)/node && $(NODE_HEADERS) npm ci --no-audit --no-fund --silent --fetch-retries=5
	@touch $@

# --- Running ---------------------------------------------------------------------------------

run: $(VENV)/run.stamp
	@exec $(BIN)/odradek serve $(ARGS)

demo: $(VENV)/demo.stamp
	@.ci/need java
	@exec $(BIN)/odradek demo $(ARGS)

# --- Testing ---------------------------------------------------------------------------------

# Most tests wait most of the time: for a session to end, a broker to come back, a lag to show. So
# more of them run at once than there are processors. With ARGS it is one plain run.
test: $(VENV)/test.stamp
	@.ci/need java
	$(PYTEST) $(SHORT) $(NO_HANGING) $(if $(ARGS),$(ARGS),$(WORKERS))

test-slow: $(VENV)/test.stamp
	@PATH="$$PATH:/usr/sbin" .ci/need java javac mvn go node npm kcat tshark faketime ip unshare \
		prometheus systemd-analyze zsh fish
	$(PYTEST) $(SLOW) $(NO_HANGING) $(if $(ARGS),$(ARGS),$(SLOW_WORKERS))

# What needs no connector of Spark's; the comparisons of "both" sources do.
test-newest-spark: $(NEWEST_SPARK)/installed.stamp
	@.ci/need java
	PYTHONPATH=$(CURDIR)/$(NEWEST_SPARK) ODRADEK_TEST_WITHOUT_CONNECTOR=1 $(PYTEST) \
		tests/spark/test_without_connector.py tests/spark/test_odradek_source.py \
		tests/spark/test_values.py \
		-k 'not test_both' $(NO_HANGING) $(if $(ARGS),$(ARGS),-n 2 --dist loadfile)

# MIT's KDC runs as a process of the tests, in a folder of theirs.
test-kerberos: $(KERBEROS)/installed.stamp
	@PATH="$$PATH:/usr/sbin" .ci/need java javac mvn go node kcat krb5kdc kadmin.local kinit \
		libgssapiv2.so
	PYTHONPATH=$(CURDIR)/$(KERBEROS) NODE_PATH=$(CURDIR)/$(KERBEROS)/node/node_modules \
		ODRADEK_TEST_KERBEROS=1 PATH="$$PATH:/usr/sbin" $(PYTEST) tests/kerberos $(NO_HANGING) $(ARGS)

# The base is Debian's Python, so no registry of images is asked.
test-container: $(VENV)/test.stamp
	@PATH="$$PATH:/usr/sbin" .ci/need buildah debootstrap
	ODRADEK_TEST_CONTAINER=1 PATH="$$PATH:/usr/sbin" $(PYTEST) tests/container $(NO_HANGING) $(ARGS)

test-all: test test-slow test-newest-spark test-kerberos test-container conformance

coverage: $(VENV)/test.stamp
	@.ci/need java
	@rm -rf .cache/coverage && mkdir -p .cache/coverage
	$(COVERAGE) $(PYTEST) $(SHORT) $(NO_HANGING) $(WORKERS) --cov --cov-report= $(ARGS)
	@$(COVERAGE) $(BIN)/python -m coverage report --sort=cover --skip-covered

interop: $(VENV)/test.stamp
	@.ci/need java javac mvn go node npm kcat tshark
	$(PYTEST) -m interop $(NO_HANGING) $(ARGS)

conformance: $(VENV)/test.stamp
	@.ci/need java mvn
	@mvn -q -B -f $(KAFKA)/pom.xml dependency:copy-dependencies
	@$(BIN)/python -m odradek.tools.conformance --kafka-libs $(KAFKA)/target/dependency $(ARGS)
	$(PYTEST) tests/interop/test_authorization_conformance.py

soak: $(VENV)/test.stamp
	$(PYTEST) -m soak $(ARGS)

fuzz: $(VENV)/fuzz.stamp
	@for target in $(FUZZ_TARGETS); do echo "== $$target"; $(BIN)/python tests/fuzz/fuzz.py \
		$$target -max_total_time=$(FUZZ_SECONDS) -verbosity=1 $(ARGS) || exit 1; done

check: $(VENV)/test.stamp
	$(BIN)/ruff format --check --quiet --output-format concise .
	$(BIN)/ruff check --quiet --output-format concise .
	@mkdir -p $(MYPY_PATH) && ln -sfn "$(CURDIR)" $(MYPY_PATH)/odradek
	MYPYPATH=$(MYPY_PATH) $(BIN)/mypy --cache-dir .cache/mypy \
		--exclude '(^|/)(tests/(?!support/|$$)|examples/testing/|build/)' -p odradek
	$(PYTEST) -q tests/test_architecture.py tests/test_generated.py

format: $(VENV)/test.stamp
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .

docs: $(VENV)/run.stamp
	$(BIN)/python -m odradek.tools.docs.configuration_page > docs/configuration.md
	$(BIN)/python -m odradek.tools.docs.api_table > docs/apis.md
	$(BIN)/python -m odradek.tools.docs.metrics_page > docs/metrics.md
	$(BIN)/python -m odradek.broker.metrics.dashboard > docs/grafana-dashboard.json
	$(BIN)/python -m odradek.tools.docs.faults_page > docs/faults.md
	$(BIN)/python -m odradek.tools.docs.control_page > docs/control.md
	$(BIN)/python -m odradek.tools.docs.clients_page > docs/clients.md
	$(BIN)/python -m odradek.tools.docs.state_diagram

# Whoever writes sees the pages as they are written, at http://localhost:8000.
site: $(VENV)/test.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs $(if $(ARGS),$(ARGS),build --strict)
	@$(if $(ARGS),,echo 'build/site/index.html')

bench: $(VENV)/test.stamp
	@.ci/need java mvn go
	$(BIN)/python -m odradek.tools.benchmarks.side_by_side $(ARGS)

bench-growth: $(VENV)/test.stamp
	$(BIN)/python -m odradek.tools.benchmarks.growth $(ARGS)

bench-worst: $(VENV)/test.stamp
	$(BIN)/python -m odradek.tools.benchmarks.worst_requests $(ARGS)

bench-goals: $(VENV)/test.stamp
	@missed=0; for name in $(BENCHMARKS); do echo "== $$name"; \
		$(BIN)/python -m "odradek.tools.benchmarks.$$name" || missed=1; done; exit $$missed

long-run: $(VENV)/test.stamp
	$(BIN)/python -m odradek.tools.benchmarks.long_run $(ARGS)

profiles: $(VENV)/profile.stamp
	$(BIN)/python -m odradek.tools.benchmarks.profiles $(ARGS)

bench-codec: $(VENV)/test.stamp
	@$(BIN)/python -m odradek.tools.benchmarks.codec $(ARGS)

wheel: $(VENV)/run.stamp
	@rm -rf build dist
	$(PIP) wheel --no-deps --wheel-dir dist . && $(FORGET_BUILD)

smoke: wheel
	@.ci/smoke

fetch: $(VENV)/test.stamp
	@.ci/fetch

clean:
	rm -rf $(VENV) .cache build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
