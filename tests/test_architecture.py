"""The layering, held by a test: who may import whom, and which calls go through the seams.

The table is the one of the design; think hard before changing it. Each rule is a function from
a module's path and source to what is wrong with it, such as
`storage/log/log.py:3: storage may not import broker`; each is proven on planted violations below.
"""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.slow  # `make check` runs these, and CI does both

ROOT = Path(__file__).parents[1]

LAYERS: dict[str, str] = {
    "common": "",
    "runtime": "",
    "protocol": "common",
    "storage": "common runtime protocol",
    "client": "common runtime protocol",
    "replication": "common runtime protocol storage client",
    "config": "common runtime protocol storage",
    "metadata_store": "common runtime protocol config storage",
    "metadata": "common runtime protocol",
    "controller": "common runtime protocol client replication config metadata_store metadata",
    "coordinator": "common runtime protocol storage client replication config metadata",
    "security": "common runtime protocol storage client config metadata_store",
    "broker": "common runtime protocol storage client replication config metadata_store metadata"
    " controller coordinator security",
    "log_tools": "common runtime protocol storage",
    "schemas": "",
    "spark_connector": "common runtime protocol storage log_tools schemas",
    "testing": "common runtime protocol storage client replication config metadata_store metadata"
    " controller coordinator security broker log_tools spark_connector",
    "bench": "common runtime protocol client testing",
    "console": "common runtime protocol client schemas",
    "cli": "common runtime protocol storage client replication config metadata_store metadata"
    " controller coordinator security broker log_tools schemas spark_connector testing bench"
    " console",
    "tools": "common runtime protocol storage client replication config metadata_store metadata"
    " controller coordinator security broker log_tools schemas spark_connector testing bench"
    " console cli",
}
"""The packages, and which of the others each may import."""

MAY_IMPORT: dict[str, set[str]] = {
    package: set(others.split()) for package, others in LAYERS.items()
}
PACKAGES = frozenset(MAY_IMPORT)
WORKSHOP = "tools"
"""The package that is not in the wheel."""

THIRD_PARTY: dict[str, set[str]] = {
    "protocol": {"construct", "cramjam", "crc32c", "backports", "compression"},
    "runtime": {"trio"},
    "storage": set(),
    "client": {"trio", "gssapi"},
    "common": set(),
    "config": set(),
    "metadata": set(),
    "replication": set(),
    "metadata_store": {"trio", "kazoo"},
    "controller": set(),
    "coordinator": {"re2", "xxhash"},
    "security": {"trio", "jwt", "cryptography", "gssapi"},
    "log_tools": set(),
    "broker": {"trio", "prometheus_client"},
    "console": {"trio", "starlette", "hypercorn", "jinja2", "markupsafe", "prometheus_client"},
}
"""What a package may import from outside; packages that are not named are free."""

NEEDED_BY_TESTS_ONLY = {
    "aiokafka": frozenset[str](),
    "kafka": frozenset({"bench/loads/round_trip_load.py"}),
}
"""Clients that are not installed with odradek, and modules that can use them if they are there."""

NO_TRIO = frozenset({"schemas", "spark_connector"})

SOCKETS = {"asyncio", "select", "selectors", "socket", "socketserver", "ssl"}
CLOCKS = {"datetime", "random", "secrets", "time", "uuid"}
FILES = {"os", "pathlib", "shutil", "sqlite3", "tempfile"}
NEVER: dict[str, set[str]] = {
    "protocol": SOCKETS | CLOCKS | FILES | {"threading"},
    "storage": SOCKETS,
    "replication": SOCKETS,
}
"""What of the standard library a package may not import at run time."""

BEHIND_SEAMS = frozenset(MAY_IMPORT) - {
    "common",
    "runtime",
    "schemas",
    "spark_connector",
    "testing",
    "bench",
    "cli",
    "console",
    "tools",
}
"""Rooms that get clock, rng and files from outside."""

FILE_SEAMS = frozenset({"storage/io/files.py"})
"""Where files are opened for the packages above."""

CLOCK_CALLS = {
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.perf_counter",
    "time.sleep",
    "datetime.now",
    "datetime.utcnow",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "os.urandom",
    "uuid.uuid1",
    "uuid.uuid4",
}
WALL_TIME = {
    ("broker/interbroker/transaction_markers.py", "write"): "timestamps of markers",
    ("broker/interbroker/transaction_verification.py", "_start"): (
        "forgotten with producer ids, after a day"
    ),
    ("broker/broker.py", "_tokens"): "when delegation tokens are issued and expire",
    ("broker/share/share_partition_manager.py", "_first_offset"): (
        "share.auto.offset.reset=by_duration"
    ),
    ("broker/log_adoption.py", "_skip_producer_ids"): (
        "begins producer ids above those of a lost store; they only grow"
    ),
    ("broker/start.py", "_count_suppressed_lines"): "lines of the log have it, and count by it",
    ("broker/request/fast_path/produce.py", "_stage _answer"): (
        "LogAppendTime, and what timestamps may be"
    ),
    ("broker/request/token_requests.py", "alter_token"): "when a removed token expired",
    ("client/consumer/consumer.py", "_reset"): (
        "auto.offset.reset=by_duration, looked up by timestamp"
    ),
    ("client/network/trio_clock.py", "now_ms"): "hands it on",
    ("client/producer/producer.py", "__init__"): "CreateTime",
    ("client/properties.py", "_token_authentication"): "when tokens expire",
    ("controller/controller.py", "_stand"): "the timestamp in /controller",
    ("controller/registration.py", "register_when_free"): "the timestamp in /brokers/ids",
    ("coordinator/group/classic/classic_groups.py", "_store_assignment prepare _complete_join"): (
        "state timestamps, which expire offsets"
    ),
    ("coordinator/group/consumer/migration.py", "downgrade"): (
        "state timestamps, which expire offsets"
    ),
    ("coordinator/group/consumer/regular_expressions.py", "_is_due _resolve"): (
        "the timestamp of what was resolved, and whether that is old"
    ),
    ("coordinator/group/consumer/target_assignment.py", "update_target"): (
        "the timestamp of an assignment"
    ),
    ("coordinator/group/factory.py", "create_group_coordinator"): (
        "begins the versions of topics; they only grow"
    ),
    ("coordinator/group/offset_metadata_manager.py", "encode _find_expired"): (
        "commit timestamps, and offsets.retention"
    ),
    ("coordinator/group/shards.py", "_new_group find_or_create _mark_dead"): (
        "state timestamps, which expire offsets"
    ),
    ("coordinator/group/share/share_groups.py", "_update_targets"): (
        "the timestamp of an assignment"
    ),
    ("coordinator/group/streams/streams_groups.py", "_update_targets"): (
        "the timestamp of an assignment"
    ),
    ("coordinator/replicated_log.py", "append"): "timestamps of records",
    ("coordinator/share/coordinator.py", "_initialize _made_ready _snapshot_cold"): (
        "timestamps of snapshots, and whether one is old"
    ),
    (
        "coordinator/transaction/coordinator.py",
        "_new_id _next_producer add_partitions end_transaction _fence _begin_completion",
    ): "start and update timestamps",
    ("coordinator/transaction/coordinator.py", "list_transactions"): (
        "the ages that its filter compares with start timestamps"
    ),
    ("coordinator/transaction/state_manager.py", "remove_expired"): (
        "transactional.id.expiration, after a week"
    ),
    ("replication/alter_log_dirs/future_replica_tasks.py", "_flush"): "retention",
    ("replication/replica_manager.py", "append_records _flush_staged"): (
        "LogAppendTime, and what timestamps may be"
    ),
    ("security/authenticator/sasl_listeners.py", "authenticator _token_validator _token_login"): (
        "when credentials expire"
    ),
    ("storage/cleaner/log_cleaner_manager.py", "find_filthiest begin swap_in"): (
        "delete.retention, and timestamps that dirt has"
    ),
    ("storage/log_manager/log_loading.py", "__init__"): "segments' ages",
    ("storage/log_manager/log_manager.py", "__init__ _make_log _load_future_log"): (
        "segments' ages"
    ),
    ("storage/log_manager/log_manager.py", "_delete_some remove_expired_producers"): (
        "retention, and producer.id.expiration"
    ),
}
"""Which functions of a module read the wall clock, and for which of the timestamps that Kafka
writes. Whatever decides about liveness, leadership, locks or time-outs goes by `monotonic_ms`,
which nobody can set."""

MAY_READ_WALL_TIME = frozenset(
    (path, function) for path, functions in WALL_TIME for function in functions.split()
)

FILE_CALLS = {"open", "os.open", "io.open"}
FILE_METHODS = {"read_bytes", "read_text", "write_bytes", "write_text"}
"""Methods of a `Path`; the seam, which is always called `files`, has some of the same names."""


class Module(NamedTuple):
    """One Python file: its path from the root, and what is in it."""

    path: str
    source: str

    @property
    def package(self) -> str:
        return self.path.partition("/")[0]


class Import(NamedTuple):
    line: int
    level: int
    names: tuple[str, ...]
    """What is imported: dotted names, for a relative import seen from its package."""
    for_types_only: bool


Rule = Callable[[Module], Iterator[str]]


# --- Reading a module -----------------------------------------------------------------------


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def imports_of(module: Module) -> tuple[Import, ...]:
    """Every import of a module, wherever it stands."""
    return tuple(find_imports(module))


def find_imports(module: Module) -> Iterator[Import]:
    typing_only = {
        id(inner)
        for node in ast.walk(parsed(module.source))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(parsed(module.source)):
        if isinstance(node, ast.Import):
            names = tuple(alias.name for alias in node.names)
            yield Import(node.lineno, 0, names, id(node) in typing_only)
        elif isinstance(node, ast.ImportFrom):
            prefix = f"{node.module}." if node.module else ""
            names = tuple(prefix + alias.name for alias in node.names)
            yield Import(node.lineno, node.level, names, id(node) in typing_only)


def imported_packages(module: Module) -> Iterator[tuple[int, str]]:
    """The packages that a module's relative imports reach."""
    folders = module.path.split("/")[:-1]
    for found in imports_of(module):
        if found.level == 0:
            continue
        base = folders[: len(folders) - (found.level - 1)]
        for name in found.names:
            package = [*base, *name.split(".")][0]
            if package in PACKAGES:
                yield found.line, package


def calls_of(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(parsed(module.source)):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


# --- The rules ------------------------------------------------------------------------------


def packages_import_only_what_they_may(module: Module) -> Iterator[str]:
    for line, package in imported_packages(module):
        if package != module.package and package not in MAY_IMPORT[module.package]:
            yield f"{module.path}:{line}: {module.package} may not import {package}"


def imports_inside_are_relative(module: Module) -> Iterator[str]:
    for found in imports_of(module):
        for name in found.names:
            first = name.partition(".")[0]
            if found.level == 0 and first == "odradek":
                yield f"{module.path}:{found.line}: import {name} relatively"
            if found.level == 0 and first in PACKAGES:
                yield f"{module.path}:{found.line}: {first} is a package: import it relatively"


def third_parties_stay_in_their_packages(module: Module) -> Iterator[str]:
    allowed = THIRD_PARTY.get(module.package)
    for found in imports_of(module):
        for name in found.names:
            package = name.partition(".")[0]
            if found.level or is_standard(package) or package in PACKAGES | {"odradek"}:
                continue
            if module.package != WORKSHOP and module.path not in NEEDED_BY_TESTS_ONLY.get(
                package, {module.path}
            ):
                yield f"{module.path}:{found.line}: {package} is not installed with odradek"
            if module.package in NO_TRIO and package == "trio":
                yield f"{module.path}:{found.line}: {module.package} may not import trio"
            if allowed is None or package in allowed:
                continue
            yield f"{module.path}:{found.line}: {module.package} may not import {package}"


def is_standard(package: str) -> bool:
    return package in sys.stdlib_module_names or package == "__future__"


def packages_keep_away_from_sockets_clocks_and_files(module: Module) -> Iterator[str]:
    never = NEVER.get(module.package, set())
    for found in imports_of(module):
        for name in found.names:
            package = name.partition(".")[0]
            if not found.level and package in never and not found.for_types_only:
                yield f"{module.path}:{found.line}: {module.package} may not import {package}"


def clock_and_rng_come_from_outside(module: Module) -> Iterator[str]:
    if module.package not in BEHIND_SEAMS:
        return
    imported = {
        name for found in imports_of(module) if not found.for_types_only for name in found.names
    }
    for line, call in calls_of(module):
        is_random = call.startswith("random.") and call != "random.Random" and "random" in imported
        if call in CLOCK_CALLS or is_random:
            yield f"{module.path}:{line}: {call}() goes around the seams of runtime"
    for found in imports_of(module):
        for name in found.names:
            called = name.partition(".")[2]
            if found.level == 0 and (
                name in CLOCK_CALLS or (name.startswith("random.") and called != "Random")
            ):
                yield f"{module.path}:{found.line}: {name} goes around the seams of runtime"


def wall_time_is_read_for_timestamps(module: Module) -> Iterator[str]:
    if module.package not in BEHIND_SEAMS:
        return
    for function, line, read in reads_of_wall_time(module):
        if (module.path, function) not in MAY_READ_WALL_TIME:
            where = f"in {function}" if function else "outside of functions"
            yield f"{module.path}:{line}: {read} is wall time {where}: see WALL_TIME"


def reads_of_wall_time(module: Module) -> Iterator[tuple[str, int, str]]:
    """Function, line and text of each read; a function within another counts as that."""

    def find(node: ast.AST, function: str) -> Iterator[tuple[str, int, str]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = function or node.name
        if isinstance(node, ast.Attribute) and node.attr == "now_ms":
            owner = ast.unparse(node.value)
            if re.search("clock|wall", owner, re.IGNORECASE):
                yield function, node.lineno, ast.unparse(node)
        for inner in ast.iter_child_nodes(node):
            yield from find(inner, function)

    yield from find(parsed(module.source), "")


def files_are_opened_behind_the_seam(module: Module) -> Iterator[str]:
    if module.package not in BEHIND_SEAMS or module.path in FILE_SEAMS:
        return
    for line, call in calls_of(module):
        owner, _, method = call.rpartition(".")
        if call in FILE_CALLS or (method in FILE_METHODS and not owner.endswith("files")):
            yield f"{module.path}:{line}: {call}() goes around storage's file seam"


def packages_say_what_they_are_for(module: Module) -> Iterator[str]:
    if module.path.endswith("__init__.py") and not ast.get_docstring(parsed(module.source)):
        yield f"{module.path}:1: a package needs a docstring: what is it for, what may not enter?"


def handler_files_have_the_function_they_are_named_after(module: Module) -> Iterator[str]:
    folder, _, file_name = module.path.rpartition("/")
    if folder != "broker/handlers" or file_name in ("__init__.py", "registry.py"):
        return
    expected = f"handle_{file_name.removesuffix('.py')}"
    functions = [
        node.name
        for node in parsed(module.source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("handle_")
    ]
    if functions != [expected]:
        yield f"{module.path}:1: handles with {functions}, not just {expected}"


def composition_root_is_imported_by_nobody_below(module: Module) -> Iterator[str]:
    """`Broker` is made last; handlers get a context, all other code the parts that it uses."""
    if module.path == "broker/start.py" or module.package in {"testing", WORKSHOP}:
        return
    folders = module.path.split("/")[:-1]
    for found in imports_of(module):
        package = folders[: len(folders) - found.level + 1] if found.level else []
        for name in found.names:
            if [*package, *name.split(".")][:2] == ["broker", "broker"]:
                yield f"{module.path}:{found.line}: imports the composition root, Broker"


def nothing_is_left_for_later(module: Module) -> Iterator[str]:
    for number, line in enumerate(module.source.splitlines(), start=1):
        if re.search(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", line):
            yield f"{module.path}:{number}: left for later: {line.strip()}"
        marker = re.search(r"#\s*(type:\s*ignore|noqa)\b[^#]*", line)
        if marker and not line[marker.end() :].strip():
            yield f"{module.path}:{number}: {marker[1]} without a reason in a comment beside it"


def no_test_sleeps(module: Module) -> Iterator[str]:
    """Waiting for an event is not sleeping; `tests/support` may poll a process from outside, and
    in `tests/tools/simulation` no time passes but simulated time."""
    if module.package != "tests" or module.path.startswith(
        ("tests/support/", "tests/tools/simulation/")
    ):
        return
    virtual = {
        id(inner)
        for node in ast.walk(parsed(module.source))
        if isinstance(node, ast.AsyncFunctionDef)
        and {"autojump_clock", "mock_clock"} & {arg.arg for arg in node.args.args}
        for inner in ast.walk(node)
    }
    for node in ast.walk(parsed(module.source)):
        if isinstance(node, ast.Call) and id(node) not in virtual:
            call = ast.unparse(node.func)
            if call.rpartition(".")[2] == "sleep":
                yield f"{module.path}:{node.lineno}: {call}() in a test: wait for an event"


RULES: tuple[Rule, ...] = (
    packages_import_only_what_they_may,
    imports_inside_are_relative,
    third_parties_stay_in_their_packages,
    packages_keep_away_from_sockets_clocks_and_files,
    clock_and_rng_come_from_outside,
    wall_time_is_read_for_timestamps,
    files_are_opened_behind_the_seam,
    packages_say_what_they_are_for,
    handler_files_have_the_function_they_are_named_after,
    composition_root_is_imported_by_nobody_below,
    nothing_is_left_for_later,
)


# --- Every file of the project --------------------------------------------------------------


@cache
def project_files() -> tuple[str, ...]:
    """What git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return tuple(sorted(path for path in listed.stdout.split("\0") if (ROOT / path).is_file()))


def modules_in(folders: frozenset[str]) -> list[Module]:
    return [
        Module(path, (ROOT / path).read_text(encoding="utf-8"))
        for path in project_files()
        if path.endswith(".py") and path.partition("/")[0] in folders
    ]


def problems(rule: Rule, modules: list[Module]) -> str:
    return "\n".join(problem for module in modules for problem in rule(module))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_packages_keep_the_rule(rule):
    modules = modules_in(PACKAGES)
    assert {module.package for module in modules} == PACKAGES
    found = problems(rule, modules)
    assert not found, f"\n{found}"


def test_what_may_read_wall_time_does():
    """A row that outlives its function would let another of that name in."""
    reads = {
        (module.path, function)
        for module in modules_in(BEHIND_SEAMS)
        for function, _, _ in reads_of_wall_time(module)
    }
    assert sorted(MAY_READ_WALL_TIME - reads) == []


def test_no_modules_import_each_other():
    """Neither at run time nor for types: what knows its user cannot be understood without it."""
    cycles = import_cycles(modules_in(PACKAGES))
    assert not cycles, "\n".join(" <-> ".join(cycle) for cycle in cycles)


def import_cycles(modules: list[Module]) -> list[list[str]]:
    """The groups of modules that import each other, type-checking imports included."""
    sources = {
        module.path.removesuffix(".py").removesuffix("/__init__"): module for module in modules
    }
    imported = {name: modules_imported(name, sources) for name in sources}
    reached = {name: reachable(name, imported) for name in sources}
    in_cycles = sorted(name for name in sources if name in reached[name])
    cycles = {
        tuple(other for other in in_cycles if other in reached[name] and name in reached[other])
        for name in in_cycles
    }
    return [list(cycle) for cycle in sorted(cycles)]


def modules_imported(name: str, sources: dict[str, Module]) -> set[str]:
    """The modules of the project that one imports; a package counts as its `__init__`."""
    folders = sources[name].path.split("/")[:-1]
    found = set()
    for each in imports_of(sources[name]):
        if each.level == 0:
            continue
        base = folders[: len(folders) - (each.level - 1)]
        for dotted in each.names:
            path = "/".join([*base, *dotted.split(".")])
            while path not in sources and "/" in path:
                path = path.rpartition("/")[0]
            if path in sources:
                found.add(path)
    return found - {name}


def reachable(start: str, imported: dict[str, set[str]]) -> set[str]:
    """Everything that a module imports, directly or not; itself only by a cycle."""
    found: set[str] = set()
    left = list(imported[start])
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left.extend(imported[name])
    return found


def test_tests_keep_from_sleeping():
    found = problems(no_test_sleeps, modules_in(frozenset({"tests"})))
    assert not found, f"\n{found}"


def test_root_package_keeps_nothing():
    assert not statements_beside_docstring((ROOT / "__init__.py").read_text())


def statements_beside_docstring(source: str) -> list[str]:
    tree = ast.parse(source)
    body = tree.body[1:] if ast.get_docstring(tree) else tree.body
    return [ast.unparse(node) for node in body]


def test_package_map_equals_the_folders():
    declared = declared_packages((ROOT / "setup.cfg").read_text())
    assert declared == sorted(declared)
    assert declared == packages_among(project_files())


def declared_packages(text: str) -> list[str]:
    parser = configparser.ConfigParser()
    parser.read_string(text)
    return parser["options"]["packages"].split()


def packages_among(paths: tuple[str, ...]) -> list[str]:
    """The packages that folders of the packages make up; each folder with modules must be one."""
    folders = {
        path.rpartition("/")[0]
        for path in paths
        if path.endswith(".py") and path.partition("/")[0] in PACKAGES - {WORKSHOP}
    }
    return sorted(["odradek", *(f"odradek.{folder.replace('/', '.')}" for folder in folders)])


def test_every_folder_of_modules_is_a_package():
    for package in packages_among(project_files())[1:]:
        folder = package.removeprefix("odradek.").replace(".", "/")
        assert (ROOT / folder / "__init__.py").is_file(), folder


# --- What no file may say -------------------------------------------------------------------

MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+|opt/wheels)/")
REGISTRY_HOSTS = re.compile(
    r"\b(?:"
    + "|".join(
        re.escape(".".join(labels))
        for labels in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("repo1", "maven", "org"),
            ("repo", "maven", "apache", "org"),
            ("proxy", "golang", "org"),
            ("sum", "golang", "org"),
            ("deb", "debian", "org"),
            ("crates", "io"),
        )
    )
    + r")\b"
)


def machine_names(path: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern in (MACHINE_PATHS, REGISTRY_HOSTS):
            found = pattern.search(line)
            if found:
                yield f"{path}:{number}: names a machine or a registry: {found[0]}"


def test_no_file_names_a_machine_or_a_registry():
    found = []
    for path in project_files():
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not a text
        found.extend(machine_names(path, text))
    assert not found, "\n" + "\n".join(found)


# --- The rules see what they are for --------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "path", "source", "problem"),
    [
        (
            packages_import_only_what_they_may,
            "protocol/bad.py",
            "from ..storage import log\n",
            "protocol/bad.py:1: protocol may not import storage",
        ),
        (
            packages_import_only_what_they_may,
            "protocol/records/bad.py",
            "def f():\n    from ... import broker\n",
            "protocol/records/bad.py:2: protocol may not import broker",
        ),
        (
            packages_import_only_what_they_may,
            "replication/bad.py",
            "from ..broker.handlers.registry import handles\n",
            "replication/bad.py:1: replication may not import broker",
        ),
        (
            packages_import_only_what_they_may,
            "testing/bad.py",
            "from ..cli.main import main\n",
            "testing/bad.py:1: testing may not import cli",
        ),
        (
            imports_inside_are_relative,
            "broker/bad.py",
            "import odradek.protocol\n",
            "broker/bad.py:1: import odradek.protocol relatively",
        ),
        (
            imports_inside_are_relative,
            "broker/bad.py",
            "from protocol import errors\n",
            "broker/bad.py:1: protocol is a package: import it relatively",
        ),
        (
            third_parties_stay_in_their_packages,
            "storage/bad.py",
            "import trio\n",
            "storage/bad.py:1: storage may not import trio",
        ),
        (
            third_parties_stay_in_their_packages,
            "spark_connector/bad.py",
            "from trio import run\n",
            "spark_connector/bad.py:1: spark_connector may not import trio",
        ),
        (
            third_parties_stay_in_their_packages,
            "cli/bad.py",
            "from kafka import KafkaProducer\n",
            "cli/bad.py:1: kafka is not installed with odradek",
        ),
        (
            third_parties_stay_in_their_packages,
            "broker/bad.py",
            "import typer\n",
            "broker/bad.py:1: broker may not import typer",
        ),
        (
            packages_keep_away_from_sockets_clocks_and_files,
            "protocol/bad.py",
            "import time\n",
            "protocol/bad.py:1: protocol may not import time",
        ),
        (
            packages_keep_away_from_sockets_clocks_and_files,
            "replication/bad.py",
            "from socket import socket\n",
            "replication/bad.py:1: replication may not import socket",
        ),
        (
            clock_and_rng_come_from_outside,
            "broker/bad.py",
            "import time\nnow = time.time()\n",
            "broker/bad.py:2: time.time() goes around the seams of runtime",
        ),
        (
            clock_and_rng_come_from_outside,
            "storage/bad.py",
            "from time import monotonic\n",
            "storage/bad.py:1: time.monotonic goes around the seams of runtime",
        ),
        (
            clock_and_rng_come_from_outside,
            "broker/bad.py",
            "import random\nrandom.shuffle(brokers)\n",
            "broker/bad.py:2: random.shuffle() goes around the seams of runtime",
        ),
        (
            wall_time_is_read_for_timestamps,
            "controller/bad.py",
            "deadline_ms = self._clock.now_ms() + 1\n",
            "controller/bad.py:1: self._clock.now_ms is wall time outside of functions: "
            "see WALL_TIME",
        ),
        (
            wall_time_is_read_for_timestamps,
            "controller/controller.py",  # where another function may
            "def _stand(): clock.now_ms()\ndef _lead():\n    def late(): return clock.now_ms()\n",
            "controller/controller.py:3: clock.now_ms is wall time in _lead: see WALL_TIME",
        ),
        (
            files_are_opened_behind_the_seam,
            "storage/bad.py",
            "with open('x') as file:\n    pass\n",
            "storage/bad.py:1: open() goes around storage's file seam",
        ),
        (
            files_are_opened_behind_the_seam,
            "broker/bad.py",
            "text = path.read_text()\n",
            "broker/bad.py:1: path.read_text() goes around storage's file seam",
        ),
        (
            packages_say_what_they_are_for,
            "broker/bad/__init__.py",
            "from .x import y\n",
            "broker/bad/__init__.py:1: a package needs a docstring: what is it for, what may not "
            "enter?",
        ),
        (
            handler_files_have_the_function_they_are_named_after,
            "broker/handlers/heartbeat.py",
            "def handle_fetch(): ...\n",
            "broker/handlers/heartbeat.py:1: handles with ['handle_fetch'], not just "
            "handle_heartbeat",
        ),
        (
            handler_files_have_the_function_they_are_named_after,
            "broker/handlers/heartbeat.py",
            "def f(): ...\n",
            "broker/handlers/heartbeat.py:1: handles with [], not just handle_heartbeat",
        ),
        (
            composition_root_is_imported_by_nobody_below,
            "broker/request/bad.py",
            "if TYPE_CHECKING:\n    from ..broker import Broker\n",
            "broker/request/bad.py:2: imports the composition root, Broker",
        ),
        (
            nothing_is_left_for_later,
            "broker/bad.py",
            "x = 1\n# TO" + "DO: more\n",
            "broker/bad.py:2: left for later: # TO" + "DO: more",
        ),
        (
            nothing_is_left_for_later,
            "broker/bad.py",
            "import x  # no" + "qa: F401\n",
            "broker/bad.py:1: noqa without a reason in a comment beside it",
        ),
        (
            no_test_sleeps,
            "tests/bad.py",
            "import time\ntime.sleep(1)\n",
            "tests/bad.py:2: time.sleep() in a test: wait for an event",
        ),
        (
            no_test_sleeps,
            "tests/bad.py",
            "async def test_x():\n    await trio.sleep(1)\n",
            "tests/bad.py:2: trio.sleep() in a test: wait for an event",
        ),
    ],
)
def test_rule_finds_a_planted_violation(rule, path, source, problem):
    assert list(rule(Module(path, source))) == [problem]


@pytest.mark.parametrize(
    ("rule", "path", "source"),
    [
        (packages_import_only_what_they_may, "storage/ok.py", "from ..protocol import errors\n"),
        (packages_import_only_what_they_may, "storage/ok.py", "from .log import Log\n"),
        (
            packages_import_only_what_they_may,
            "broker/handlers/ok.py",
            "from ..broker import Broker\n",
        ),
        (packages_import_only_what_they_may, "broker/a/b/ok.py", "from ....storage import log\n"),
        (third_parties_stay_in_their_packages, "broker/ok.py", "import trio\nimport os\n"),
        (third_parties_stay_in_their_packages, "cli/ok.py", "import typer\n"),
        (
            packages_keep_away_from_sockets_clocks_and_files,
            "protocol/ok.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import random\n",
        ),
        (
            clock_and_rng_come_from_outside,
            "broker/ok.py",
            "import random\nfrom random import Random\nr = random.Random(1)\nr.shuffle([])\n",
        ),
        (clock_and_rng_come_from_outside, "runtime/ok.py", "import time\ntime.time()\n"),
        (files_are_opened_behind_the_seam, "storage/io/files.py", "open('x')\n"),
        (files_are_opened_behind_the_seam, "storage/ok.py", "LogSegment.open(1)\n"),
        (files_are_opened_behind_the_seam, "storage/ok.py", "self._files.read_bytes('x')\n"),
        (clock_and_rng_come_from_outside, "broker/ok.py", "def f(random): random.random()\n"),
        (
            handler_files_have_the_function_they_are_named_after,
            "broker/handlers/heartbeat.py",
            "async def handle_heartbeat(): ...\n",
        ),
        (
            composition_root_is_imported_by_nobody_below,
            "testing/ok.py",
            "from ..broker.broker import Broker\nfrom ..broker.start import run_brokers\n",
        ),
        (nothing_is_left_for_later, "broker/ok.py", "import x  # no" + "qa: F401  # a reason\n"),
        (
            no_test_sleeps,
            "tests/ok.py",
            "async def test_x(autojump_clock):\n    await trio.sleep(1)\n",
        ),
    ],
)
def test_rule_lets_pass_what_is_right(rule, path, source):
    assert list(rule(Module(path, source))) == []


def test_modules_that_import_each_other_are_found():
    modules = [
        Module("a/__init__.py", ""),
        Module(
            "a/one.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import two\n",
        ),
        Module("a/two.py", "from ..b.three import x\n"),
        Module("b/__init__.py", ""),
        Module("b/three.py", "def f():\n    from ..a.one import y\n"),
        Module("b/four.py", "from . import three\n"),
    ]
    assert import_cycles(modules) == [["a/one", "a/two", "b/three"]]


def test_what_the_page_of_the_architecture_names_is_there():
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/.]+(?:\.py|/))`", page)
    assert len(named) > 40
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_state_in_the_root_package_is_found():
    assert statements_beside_docstring('"""Words."""\nversion = 1\n') == ["version = 1"]


def test_folder_missing_from_the_package_map_is_found():
    paths = ("protocol/__init__.py", "protocol/records/batch.py", "tests/x.py", "docs/y.md")
    assert packages_among(paths) == ["odradek", "odradek.protocol", "odradek.protocol.records"]
    assert declared_packages("[options]\npackages =\n    odradek\n    odradek.protocol\n") == [
        "odradek",
        "odradek.protocol",
    ]


@pytest.mark.parametrize(
    "line",
    ["see /ro" + "ot/x", "at /wo" + "rk/main", "https://pypi" + ".org/simple", "/ho" + "me/me/x"],
)
def test_name_of_a_machine_or_a_registry_is_found(line):
    assert list(machine_names("README.md", f"fine\n{line}\n"))


@pytest.mark.parametrize("line", ["log.dir=/tmp/kafka-logs", "a/root/b", "net/work/s", "/works"])
def test_other_paths_are_no_machines(line):
    assert not list(machine_names("README.md", line))
