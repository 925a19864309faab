from odradek.replication.purgatory.delayed_operation import DelayedOperation, Purgatory
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers


class Waiting(DelayedOperation):
    def __init__(self) -> None:
        super().__init__()
        self.satisfied = False
        self.completions = 0

    def is_satisfied(self) -> bool:
        return self.satisfied

    def on_complete(self) -> None:
        self.completions += 1


class House:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers()
        self.purgatory: Purgatory[str] = Purgatory(self.timers, self.clock)

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.timers.run_due(self.clock.monotonic_ms())


def test_a_satisfied_operation_completes_at_once_and_is_not_watched() -> None:
    house, operation = House(), Waiting()
    operation.satisfied = True
    assert house.purgatory.try_complete_else_watch(operation, ["a"], 100)
    assert operation.completions == 1
    assert not house.purgatory.has_watchers("a")
    assert len(house.timers) == 0


def test_an_operation_completes_when_its_key_is_checked_and_only_once() -> None:
    house, operation = House(), Waiting()
    assert not house.purgatory.try_complete_else_watch(operation, ["a", "b"], 100)
    assert house.purgatory.check_and_complete("a") == 0
    operation.satisfied = True
    assert house.purgatory.check_and_complete("other") == 0
    assert house.purgatory.check_and_complete("b") == 1
    assert house.purgatory.check_and_complete("a") == 0
    house.advance(1000)
    assert operation.completions == 1
    assert not house.purgatory.has_watchers("a")
    assert not house.purgatory.has_watchers("b")


def test_an_operation_expires_at_its_deadline_not_before() -> None:
    house, operation = House(), Waiting()
    house.purgatory.try_complete_else_watch(operation, ["a"], 100)
    house.advance(99)
    assert operation.completions == 0
    house.advance(1)
    assert operation.completions == 1
    assert house.purgatory.watched("a") == 0


def test_operations_completed_through_another_key_do_not_pile_up() -> None:
    house = House()
    for _ in range(1000):
        operation = Waiting()
        house.purgatory.try_complete_else_watch(operation, ["quiet", "busy"], 100)
        operation.satisfied = True
        house.purgatory.check_and_complete("busy")
    assert len(house.purgatory._watchers["quiet"].operations) <= 16


def test_a_key_named_twice_is_watched_once() -> None:
    house, operation = House(), Waiting()
    house.purgatory.try_complete_else_watch(operation, ["a"] * 1000, 100)
    assert house.purgatory.watched("a") == 1


def test_many_waiting_for_one_key_are_not_looked_through_for_each_newcomer() -> None:
    house = House()
    looks = 0

    class Counted(Waiting):
        def __getattribute__(self, name: str) -> object:
            nonlocal looks
            looks += name == "is_completed"
            return super().__getattribute__(name)

    for _ in range(2000):
        house.purgatory.try_complete_else_watch(Counted(), ["a"], 100)
    assert looks <= 2000 * 6


def test_completing_may_park_another_operation_under_the_same_key() -> None:
    house = House()
    later = Waiting()

    class Successor(Waiting):
        def on_complete(self) -> None:
            super().on_complete()
            house.purgatory.try_complete_else_watch(later, ["a"], 100)

    first = Successor()
    house.purgatory.try_complete_else_watch(first, ["a"], 100)
    first.satisfied = True
    assert house.purgatory.check_and_complete("a") == 1
    assert house.purgatory.watched("a") == 1
    later.satisfied = True
    assert house.purgatory.check_and_complete("a") == 1
    assert later.completions == 1
