"""What a run is made on: hardware, system, versions."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path

PACKAGES = ("odradek", "kafka-python", "confluent-kafka")


def machine() -> dict[str, str]:
    """Processor, cores, memory, system and load, in words."""
    model = platform.processor() or platform.machine()
    found = re.search(r"model name\s*: (.+)", _read("/proc/cpuinfo"))
    memory = re.search(r"MemTotal:\s+(\d+) kB", _read("/proc/meminfo"))
    described = {
        "processor": found[1] if found else model,
        "cores": str(os.cpu_count()),
        "memory": f"{int(memory[1]) * 1024 / 1e9:.0f} GB" if memory else "unknown",
        "system": f"{platform.system()} {platform.release()}",
    }
    if hasattr(os, "getloadavg"):
        described["load"] = f"{os.getloadavg()[0]:.2f}"
    return described


def versions() -> dict[str, str]:
    """Python's version, and those of odradek and of the clients that are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def in_words(machine: dict[str, str], versions: dict[str, str]) -> str:
    """Both in one line."""
    described = f"{machine['processor']}, {machine['cores']} cores, {machine['memory']} of memory"
    described += f", {machine['system']}"
    if "load" in machine:
        described += f", load {machine['load']}"
    return ", ".join([described, *(f"{name} {version}" for name, version in versions.items())])


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
