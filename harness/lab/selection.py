"""Which jobs of a suite run: ``-k EXPR`` and ``--shard i/n``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.errors import UsageError
from harness.units import quoted

J = TypeVar("J")
_TOKEN = re.compile(r"\s*(?:(\()|(\))|([^\s()]+))")
Test = Callable[[str], bool]
#: Parentheses deeper than anybody writes by hand.
_MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Expression:
    """``kws and not (cmsis_nn or sim:)``: each word matches anywhere in a job's words, case aside."""

    text: str
    test: Test

    def matches(self, words: Iterable[str]) -> bool:
        return self.test(" ".join(words).lower())


def parse_expression(text: str) -> Expression:
    """Raises UsageError where the words do not make an expression."""
    tokens = [paren or close or word for paren, close, word in _TOKEN.findall(text)]
    parser = _Parser(text, tokens)
    test = parser.alternatives(0)
    if parser.at < len(tokens):
        raise parser.error(f"{quoted(tokens[parser.at])} does not belong there")
    return Expression(text, test)


class _Parser:
    def __init__(self, text: str, tokens: Sequence[str]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0

    def error(self, why: str) -> UsageError:
        return UsageError(
            f"-k {quoted(self.text)}: {why}", remedy="write words with and, or, not and parentheses", code="usage.k"
        )

    def alternatives(self, depth: int) -> Test:
        test = self._all_of(depth)
        while self._takes("or"):
            test = _either(test, self._all_of(depth))
        return test

    def _all_of(self, depth: int) -> Test:
        test = self._one(depth)
        while self._takes("and"):
            test = _both(test, self._one(depth))
        return test

    def _one(self, depth: int) -> Test:
        if depth > _MAX_DEPTH:
            raise self.error("it is nested too deeply")
        if self._takes("not"):
            inner = self._one(depth + 1)
            return lambda words: not inner(words)
        if self._takes("("):
            test = self.alternatives(depth + 1)
            if not self._takes(")"):
                raise self.error("a ) is missing")
            return test
        if self.at >= len(self.tokens) or self.tokens[self.at] in {")", "and", "or"}:
            raise self.error("a word is missing")
        word = self.tokens[self.at].lower()
        self.at += 1
        return lambda words: word in words

    def _takes(self, token: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] == token:
            self.at += 1
            return True
        return False


def _either(one: Test, other: Test) -> Test:
    return lambda words: one(words) or other(words)


def _both(one: Test, other: Test) -> Test:
    return lambda words: one(words) and other(words)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``index`` (from 1) of ``count``: every job is in exactly one part, whatever order they come in."""

    index: int
    count: int

    def take(self, jobs: Sequence[J], key: Callable[[J], str]) -> list[J]:
        """The part of ``jobs``, in their own order."""
        ranked = sorted(range(len(jobs)), key=lambda at: key(jobs[at]))
        mine = set(ranked[self.index - 1 :: self.count])
        return [job for at, job in enumerate(jobs) if at in mine]


def parse_shard(text: str) -> Shard:
    """``2/5``. Raises UsageError."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(
            f"--shard {quoted(text)} is no part", remedy="write i/n with 1 ≤ i ≤ n: 1/4", code="usage.shard"
        )
    return Shard(int(match[1]), int(match[2]))
