"""Answers that may come later."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    """An answer that may come later, and must come once."""

    def __init__(self) -> None:
        self.answers: list[T] = []

    def __call__(self, answer: T) -> None:
        assert not self.answers, f"answered twice: {self.answers[0]}, then {answer}"
        self.answers.append(answer)

    @property
    def is_waiting(self) -> bool:
        return not self.answers

    @property
    def answer(self) -> T:
        assert self.answers, "not answered yet"
        return self.answers[0]
