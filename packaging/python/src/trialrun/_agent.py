"""Agents that are functions."""

import inspect
import os
import traceback
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, List, Literal, Mapping, Optional, Union, cast, overload

from ._protocol import AgentMessage, AgentSettings, Answer, TraceTarget, Turn

Reply = Union[str, Answer, Mapping[str, Any]]
"""What an agent returns: the text, or a map with ``text``, ``tool_calls``, ``usage`` or ``error``."""

Function = Callable[["Message"], Union[Reply, Awaitable[Reply]]]
"""A function that answers a message. ``Message`` is a ``str``, so functions that take a ``str`` work."""


class Message(str):
    """A message of the user, with what an agent may need to know about its trial."""

    agent: str
    """Name of the agent."""
    trial: str
    """Id of the trial."""
    conversation_id: str
    """Id of the conversation, new for each trial."""
    history: List[Turn]
    """Earlier messages of both sides."""
    directory: Optional[Path]
    """Working directory in the sandbox; None if the trial has no sandbox."""
    timeout: float
    """Time limit of the trial in seconds."""
    script: Optional[str]
    """Script or prompt that the case names."""
    tools: List[Any]
    """Tools that the case provides."""
    vars: Dict[str, Any]
    """Variables of the case."""
    persona: Dict[str, Any]
    """Persona of the user."""
    options: Dict[str, Any]
    """Options of the case."""
    traces: Optional[TraceTarget]
    """Where its spans are sent; None if the agent has no ``traces``."""

    @classmethod
    def of(cls, sent: AgentMessage) -> "Message":
        """Returns the message in a callback."""
        message = cls(sent["message"])
        message.agent = sent["agent"]
        message.trial = sent["trial"]
        message.conversation_id = sent["conversation_id"]
        message.history = sent["history"]
        directory = sent["directory"]
        message.directory = None if directory is None else Path(directory)
        message.timeout = sent["timeout_ms"] / 1000
        message.script = sent.get("script")
        message.tools = sent.get("tools", [])
        message.vars = sent.get("vars", {})
        message.persona = sent.get("persona", {})
        message.options = sent.get("options", {})
        message.traces = sent.get("traces")
        return message


class Unreachable(Exception):
    """Raised by an agent if something that it needs cannot be reached. The trial is then broken, not failed."""


class Agent:
    """A function that is an agent. It can still be called."""

    def __init__(
        self, function: Function, name: str, sandbox: bool, costs: bool, traces: Optional[Literal["otlp"]] = None
    ) -> None:
        if not callable(function):
            raise TypeError(f"an agent must be a function, not {type(function).__name__}")
        if traces not in (None, "otlp"):
            raise ValueError(f"`traces` must be \"otlp\", not {traces!r}")
        if traces is not None:
            try:
                from . import _traces
            except ImportError as error:
                raise ImportError(
                    f"`traces` needs two packages ({error}): "
                    "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
                ) from error
            self._call_traced = _traces.call
        self.function = function
        self.name = name
        self.sandbox = sandbox
        self.costs = costs
        self.traces: Optional[Literal["otlp"]] = traces
        self.__doc__ = function.__doc__

    def __call__(self, message: str) -> Union[Reply, Awaitable[Reply]]:
        return self.function(cast(Message, message))

    def __repr__(self) -> str:
        return f"<agent {self.name}>"

    def call(self, params: Any) -> Any:
        """Calls the function with the parameters of a callback."""
        message = Message.of(params)
        if message.traces is None:
            return self.function(message)
        return self._call_traced(self.function, message, message.traces)

    def result(self, reply: object) -> object:
        """Returns the result to send."""
        return answer_of(reply)

    def failed(self, error: BaseException) -> None:
        """Returns None: an error is not an answer."""

    @property
    def settings(self) -> AgentSettings:
        """Returns what the program needs to know about the agent."""
        settings: AgentSettings = {"sandbox": self.sandbox, "costs": self.costs}
        if self.traces is not None:
            settings["traces"] = self.traces
        return settings


@overload
def agent(function: Function) -> Agent: ...


@overload
def agent(
    *, name: Optional[str] = None, sandbox: bool = False, costs: bool = True, traces: Optional[Literal["otlp"]] = None
) -> Callable[[Function], Agent]: ...


def agent(
    function: Optional[Function] = None,
    *,
    name: Optional[str] = None,
    sandbox: bool = False,
    costs: bool = True,
    traces: Optional[Literal["otlp"]] = None,
) -> Union[Agent, Callable[[Function], Agent]]:
    """Makes a function an agent. The function may be a coroutine.

    ``name`` is its name in reports, by default that of the function. With ``sandbox``, every trial has a directory, in
    which the agent works. ``costs=False`` says that its answers cost nothing. With ``traces="otlp"``, the OpenTelemetry spans
    of its instrumentation show what it did.
    """

    def make(function: Function) -> Agent:
        return Agent(function, name or name_of(function), sandbox, costs, traces)

    return make if function is None else make(function)


def name_of(function: Function) -> str:
    """Returns a name for an agent that has none."""
    written = str(getattr(function, "__name__", type(function).__name__))
    name = "".join(letter if letter.isascii() and letter.isalnum() or letter in "-_." else "-" for letter in written)
    return name.strip("-") or "function"


def as_agent(given: Union[Agent, Function]) -> Agent:
    """Returns the agent for a function."""
    return given if isinstance(given, Agent) else Agent(given, name_of(given), sandbox=False, costs=True)


def is_coroutine(value: object) -> bool:
    """Returns True if the answer must be awaited."""
    return inspect.isawaitable(value)


def answer_of(reply: object) -> Union[str, Dict[str, Any], None]:
    """Returns the answer to send."""
    if reply is None or isinstance(reply, str):
        return reply
    if isinstance(reply, Mapping):
        return {str(key): value for key, value in cast(Mapping[object, Any], reply).items()}
    raise TypeError(f"an agent must return a str or a dict, not {type(reply).__name__}")


def reason_of(error: BaseException) -> str:
    """Describes an exception in one line, with the innermost line of the user's own code."""
    text = " ".join(str(error).split())
    described = f"{type(error).__name__}: {text}" if text else type(error).__name__
    here = os.path.dirname(os.path.abspath(__file__))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(here)]
    own = [frame for frame in frames if "site-packages" not in frame.filename and "lib/python" not in frame.filename]
    for frame in (own or frames)[-1:]:
        described += f" ({os.path.relpath(frame.filename)}:{frame.lineno})"
    return described
