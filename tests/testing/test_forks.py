"""Brokers in a program that forks: the fork's end is not theirs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from odradek.testing import Broker, Cluster
from odradek.testing.process.process_end import wait_for_end


def exit_code_of_fork(work: Callable[[], None]) -> int:
    """Do something in a fork, which ends as if it had fallen out of its `with`."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_fork_that_leaves_the_with_of_a_broker_leaves_the_broker_alone() -> None:
    with Broker() as broker:

        def leave() -> None:
            broker.__exit__(None, None, None)
            broker.kill()

        assert exit_code_of_fork(leave) == 0
        assert broker.is_running
        assert broker.folder.is_dir()
        assert broker.control().call("control.ping")["pid"] == broker.pid


def test_a_fork_may_ask_the_broker_of_its_parent() -> None:
    with Broker() as broker:
        broker.control().call("control.ping")  # a connection that both would use

        def ask() -> None:
            assert broker.is_running
            assert broker.control().call("control.ping")["pid"] == broker.pid

        assert exit_code_of_fork(ask) == 0
        ask()


def test_a_fork_that_leaves_the_with_of_a_cluster_leaves_its_folders_alone() -> None:
    with Cluster(1) as cluster:
        assert exit_code_of_fork(lambda: cluster.__exit__(None, None, None)) == 0
        assert cluster.brokers[0].is_running
        cluster.brokers[0].restart()
        assert cluster.brokers[0].topics() == []


def test_the_end_of_a_process_is_waited_for_with_many_files_open() -> None:
    opened = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while opened[-1] < 1024:  # what select() takes at most
            opened.append(os.dup(opened[0]))
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        wait_for_end(pid)
        os.waitpid(pid, 0)
    finally:
        for descriptor in opened:
            os.close(descriptor)
