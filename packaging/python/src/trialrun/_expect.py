"""Matches values with the ``$operator`` engine."""

import atexit
import os
import threading
from typing import Any, Iterable, List, Optional, Union, cast

from ._client import Client
from ._function import Compare, Operator, as_operator
from ._protocol import ExpectParams, ExpectResult, Failure, Problem

_lock = threading.Lock()
_client: Optional[Client] = None
_process = 0


class MismatchError(AssertionError):
    """A value does not match its expectation."""

    def __init__(self, match: "Match") -> None:
        self.match = match
        super().__init__(str(match))


class Match:
    """Result of matching a value. It is true if the value matches."""

    def __init__(self, result: ExpectResult) -> None:
        self.passed: Optional[bool] = result["passed"]
        """None if it cannot be decided."""
        self.score = result["score"]
        """Score, at most 1."""
        self.failures: List[Failure] = result["failures"]
        """Places that do not match."""
        self.text = result["text"]
        """The failures as text."""
        self.problems: List[Problem] = result["problems"]
        """Warnings about the expectation."""

    def __bool__(self) -> bool:
        return self.passed is True

    def __str__(self) -> str:
        if self.passed is True:
            return "the value matches"
        verdict = "the value does not match" if self.passed is False else "it cannot be decided whether the value matches"
        warnings = [f"warning: {problem['message']}" for problem in self.problems]
        return "\n".join([verdict, self.text.rstrip(), *warnings])

    def __repr__(self) -> str:
        return f"<Match passed={self.passed} score={self.score:.3g}>"


class Expectation:
    """A value that can be matched."""

    def __init__(self, actual: Any) -> None:
        self._actual = actual

    def match(
        self,
        expected: Any,
        *,
        strict: Any = None,
        diff: Any = None,
        operators: Iterable[Union[Operator, Compare]] = (),
    ) -> Match:
        """Matches the value, and returns the result. ``operators`` are functions that the expectation uses."""
        params: ExpectParams = {"actual": self._actual, "expected": expected}
        if strict is not None:
            params["strict"] = strict
        if diff is not None:
            params["diff"] = diff
        return Match(cast(ExpectResult, _shared().call_with("expect", params, [as_operator(given) for given in operators])))

    def matches(
        self,
        expected: Any,
        *,
        strict: Any = None,
        diff: Any = None,
        operators: Iterable[Union[Operator, Compare]] = (),
    ) -> Match:
        """Raises ``MismatchError`` unless the value matches."""
        match = self.match(expected, strict=strict, diff=diff, operators=operators)
        if not match:
            raise MismatchError(match)
        return match


def expect(actual: Any) -> Expectation:
    """Returns an expectation: ``expect(value).matches({"name": "/^A/", "tags": {"$contains": "new"}})``."""
    return Expectation(actual)


def _shared() -> Client:
    """Returns the client that all expectations of this process share."""
    global _client, _process
    with _lock:
        if _client is not None and _process == os.getpid() and not _client.is_alive():
            _client = None
        if _client is None or _process != os.getpid():
            _client, _process = Client(), os.getpid()
        return _client


@atexit.register
def _close() -> None:
    if _client is not None and _process == os.getpid():
        _client.close()
