"""Assertions and operators that are functions."""

import inspect
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, Generic, List, Mapping, Optional, TypeVar, Union, cast, overload

from ._agent import name_of, reason_of
from ._protocol import AssertionCheck, FunctionSettings, OperatorValues, Verdict

Check = Callable[..., Union[bool, Verdict, Awaitable[Union[bool, Verdict]]]]
"""A function that judges a trial. It gets the answer, and the arguments if it has a second parameter."""

Compare = Callable[..., Union[bool, float, str, Mapping[str, Any], Awaitable[Union[bool, float, str, Mapping[str, Any]]]]]
"""A function that compares an actual and an expected value. Options come third if it has a third parameter."""

TIMEOUT = 30.0
"""Seconds that a function has to answer."""


class Evidence(str):
    """The last answer of an agent, with what an assertion may need to know. It is empty if there is no answer."""

    answer: Optional[str]
    """The answer; None if there is none."""
    result: Any
    """The whole result: a map with ``output``, ``messages``, ``tools``, ``state``, ``usage`` and the agent's own keys."""
    arguments: Any
    """Value after the name of the assertion, or a map of its fields."""
    directory: Optional[Path]
    """Working directory of the agent; None if the trial has no sandbox."""

    @classmethod
    def of(cls, sent: AssertionCheck) -> "Evidence":
        """Returns the evidence in a callback."""
        evidence = cls(sent["answer"] or "")
        evidence.answer = sent["answer"]
        evidence.result = sent["result"]
        evidence.arguments = sent["arguments"]
        directory = sent["directory"]
        evidence.directory = None if directory is None else Path(directory)
        return evidence

    @property
    def messages(self) -> List[Dict[str, Any]]:
        """The conversation: ``role``, ``content``, and the ``tools`` that the agent called."""
        return self._list("messages")

    @property
    def tools(self) -> List[Dict[str, Any]]:
        """The tool calls: ``name``, ``args``, ``result``."""
        return self._list("tools")

    def _list(self, key: str) -> List[Dict[str, Any]]:
        result = cast(object, self.result)
        found = cast(Dict[str, Any], result).get(key) if isinstance(result, dict) else None
        if not isinstance(found, list):
            raise ValueError(f"the agent did not report its {key}")
        return cast(List[Dict[str, Any]], found)


F = TypeVar("F", bound=Callable[..., Any])


class _Function(Generic[F]):
    """A function with a name under which tests use it. It can still be called."""

    kind = ""
    most = 0

    def __init__(self, function: F, name: str, timeout: float) -> None:
        if not callable(function):
            raise TypeError(f"{self.kind} must be a function, not {type(cast(object, function)).__name__}")
        self.function = function
        self.name = name
        self.timeout = timeout
        self.__doc__ = function.__doc__
        self._parameters = _parameters(function, self.most)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.kind.split()[-1]} {self.name}>"

    @property
    def settings(self) -> FunctionSettings:
        """Returns what the program needs to know about the function."""
        return {"timeout_ms": int(self.timeout * 1000)}

    def result(self, reply: object) -> object:
        """Returns the result to send."""
        return reply


class Assertion(_Function[Check]):
    """A function that is an assertion."""

    kind = "an assertion"
    most = 2

    def call(self, params: Any) -> object:
        """Calls the function with the parameters of a callback."""
        evidence = Evidence.of(params)
        return self.function(*[evidence, evidence.arguments][: self._parameters])

    def failed(self, error: BaseException) -> Optional[Verdict]:
        """Returns the verdict for an error of ``assert``; None for any other error, which is a mistake."""
        if not isinstance(error, AssertionError):
            return None
        return {"passed": False, "reason": reason_of(error)}


class Operator(_Function[Compare]):
    """A function that is an operator."""

    kind = "an operator"
    most = 3

    def call(self, params: Any) -> object:
        """Calls the function with the parameters of a callback."""
        values = cast(OperatorValues, params)
        given = [values.get("actual"), values.get("expected"), values.get("options")]
        return self.function(*given[: self._parameters])

    def failed(self, error: BaseException) -> None:
        """Returns None: every error is a mistake."""


@overload
def assertion(function: Check) -> Assertion: ...


@overload
def assertion(*, name: Optional[str] = None, timeout: float = TIMEOUT) -> Callable[[Check], Assertion]: ...


def assertion(
    function: Optional[Check] = None, *, name: Optional[str] = None, timeout: float = TIMEOUT
) -> Union[Assertion, Callable[[Check], Assertion]]:
    """Makes a function an assertion, which tests use by its name: ``{"polite": True}``.

    The function gets the agent's answer as an ``Evidence``, and the value after its name if it has a second parameter.
    It returns ``True`` or ``False``, or a map with ``passed``, ``score`` and ``reason``. An ``AssertionError`` says that it
    does not hold; any other exception breaks the trial, because the test has a mistake. ``timeout`` is in seconds.
    """

    def make(function: Check) -> Assertion:
        return Assertion(function, name or _word(function), timeout)

    return make if function is None else make(function)


@overload
def operator(function: Compare) -> Operator: ...


@overload
def operator(*, name: Optional[str] = None, timeout: float = TIMEOUT) -> Callable[[Compare], Operator]: ...


def operator(
    function: Optional[Compare] = None, *, name: Optional[str] = None, timeout: float = TIMEOUT
) -> Union[Operator, Callable[[Compare], Operator]]:
    """Makes a function an operator, which expectations use by its name with a ``$``: ``{"$even": True}``.

    The function gets the actual and the expected value. It returns ``True`` or ``False``, a score from 0 to 1, or a message
    that says why the value does not match. An exception leaves the expectation undecided.
    """

    def make(function: Compare) -> Operator:
        written = name or _word(function)
        return Operator(function, written if written.startswith("$") else f"${written}", timeout)

    return make if function is None else make(function)


def _word(function: Callable[..., Any]) -> str:
    """Returns a name for a function that has none: letters, digits and `_`."""
    return name_of(function).replace("-", "_").replace(".", "_")


def as_assertion(given: Union[Assertion, Check]) -> Assertion:
    """Returns the assertion for a function."""
    return given if isinstance(given, Assertion) else assertion(given)


def as_operator(given: Union[Operator, Compare]) -> Operator:
    """Returns the operator for a function."""
    return given if isinstance(given, Operator) else operator(given)


def _parameters(function: Callable[..., Any], most: int) -> int:
    """Returns the number of arguments that a function takes by position, at most ``most``."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return most
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return most
    named = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return min(len(named), most)
