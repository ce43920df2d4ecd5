"""A connection to ``trialrun rpc``."""

import asyncio
import collections
import ctypes
import functools
import inspect
import json
import os
import queue
import signal
import subprocess
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from types import TracebackType
from typing import Any, Awaitable, Callable, Deque, Dict, Iterable, List, Mapping, Optional, Type, Union, cast

from ._agent import Agent, Unreachable, reason_of
from ._function import Assertion, Operator
from ._program import find_program
from ._protocol import PROTOCOL, EventParams

# pytest shows an error in the line of the test, without the lines here.
__tracebackhide__ = True

MAX_ANSWER = 16 << 20
"""Maximum size of an answer in bytes, as for agents that are programs."""

UNREACHABLE = -32050
GAVE_UP = 1

HANDSHAKE = 30.0
"""Seconds in which the program must answer the first request."""

HANDSHAKE_VARIABLE = "TRIALRUN_HANDSHAKE_TIMEOUT"

GRACE = 10.0
"""Seconds that the program has to end after its standard input was closed."""


class TrialrunError(Exception):
    """A request that could not be carried out."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.data: Dict[str, Any] = cast(Dict[str, Any], data) if isinstance(data, dict) else {}
        self.message = message
        lines = [message]
        # The problems of tests, with their lines.
        if self.data.get("text"):
            lines = [str(self.data["text"]).rstrip()]
        lines += [f"  help: {hint}" for hint in self.data.get("hints", [])]
        super().__init__("\n".join(lines))


class ProtocolError(TrialrunError):
    """The program ended, or does not speak this version of the protocol."""


class Cancelled(BaseException):
    """Raised in the thread of an agent whose answer is no longer expected."""


Listener = Callable[[EventParams], None]


Called = Union[Agent, Assertion, Operator]
"""A function that the program calls."""

KINDS = {"agent/send": "agent", "assertion/check": "assertion", "operator/compare": "operator"}
"""Callbacks, and their parameter with the name of the function."""

MAX_EVENTS = 10_000
"""Number of events that wait for a listener, from which it delays the callbacks."""


class Callbacks:
    """Functions that the program can call during a request."""

    def __init__(self, agents: Mapping[str, Agent], functions: Iterable[Union[Assertion, Operator]]) -> None:
        assertions: Dict[str, Called] = {}
        operators: Dict[str, Called] = {}
        for function in functions:
            named = assertions if isinstance(function, Assertion) else operators
            if named.setdefault(function.name, function) is not function:
                raise ValueError(f"two functions are called `{function.name}`")
        self._called: Dict[str, Mapping[str, Called]] = {
            "agent": agents,
            "assertion": assertions,
            "operator": operators,
        }

    @property
    def settings(self) -> Dict[str, Any]:
        """Returns what the program needs to know about the functions."""
        named = {f"{kind}s": called for kind, called in self._called.items() if called}
        return {kind: {name: one.settings for name, one in called.items()} for kind, called in named.items()}

    def function(self, method: str, params: Any) -> Called:
        """Returns the function that a callback is for."""
        kind = KINDS[method]
        return self._called[kind][params[kind]]


class _Run:
    """A request in progress during which the program calls functions and sends events."""

    def __init__(self, callbacks: Callbacks, listener: Optional[Listener]) -> None:
        self.callbacks = callbacks
        self._listener = listener
        self._events: "Optional[queue.Queue[Optional[Callable[[], None]]]]" = None

    def take(self, params: EventParams) -> None:
        """Passes an event to the listener, which has a thread of its own: callbacks do not wait for it."""
        listener = self._listener
        if listener is None:
            return
        if self._events is None:
            self._events = queue.Queue(MAX_EVENTS)
            threading.Thread(target=_work, args=(self._events,), name="trialrun-events", daemon=True).start()
        self._events.put(lambda: listener(params))

    def finish(self, done: Callable[[], None]) -> None:
        """Calls ``done`` after the listener has got all events."""
        if self._events is None:
            done()
        else:
            self._events.put(done)
            self._events.put(None)


class Client:
    """A process of ``trialrun rpc``. Use it in a ``with`` statement, at whose end nothing is left running."""

    def __init__(self, program: Optional[str] = None, directory: Optional[str] = None) -> None:
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._last = 0
        self._requests: Dict[int, "Future[Any]"] = {}
        self._runs: Dict[int, _Run] = {}
        self._callbacks: Dict[int, Callable[[], None]] = {}
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._closed = False
        self._has_spoken = False
        self._end_reason: Optional[ProtocolError] = None
        self._stderr: Deque[str] = collections.deque(maxlen=50)
        limit = _handshake_limit()
        self.program = program or find_program()
        try:
            # A process group of its own: Ctrl-C reaches only this program, which then cancels the run.
            self._process = subprocess.Popen(
                [self.program, "rpc"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=directory,
                start_new_session=True,
            )
        except OSError as error:
            raise ProtocolError(0, f"cannot start {self.program}: {error}") from error
        self._threads = [
            threading.Thread(target=self._read_stderr, name="trialrun-stderr", daemon=True),
            threading.Thread(target=self._read, name="trialrun-read", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        try:
            self._initialize(limit)
        except BaseException as error:
            # There is nothing yet that the program could clean up.
            if self._process.poll() is None:
                self._signal(signal.SIGKILL)
            self.close()
            if isinstance(error, TrialrunError) and not isinstance(error, ProtocolError):
                raise ProtocolError(error.code, f"{self.program}: {error.message}", error.data) from None
            raise

    def _initialize(self, limit: float) -> None:
        """Starts the connection, and checks that the program speaks this version of the protocol."""
        params = {"protocol": PROTOCOL, "client": {"name": "trialrun-python", "version": _version()}}
        try:
            result = self._request("initialize", params, None)[1].result(limit)
        except FutureTimeout:
            raise self._foreign(f"it did not answer within {limit:g} s ({HANDSHAKE_VARIABLE} sets the limit)") from None
        spoken = cast(Dict[str, Any], result).get("protocol") if isinstance(result, dict) else None
        if spoken is None:
            raise self._foreign("its answer to `initialize` does not contain a version of the protocol")
        if spoken != PROTOCOL:
            raise ProtocolError(
                0,
                f"{self.program} speaks version {spoken} of the protocol, and this package speaks version {PROTOCOL}; "
                "install the program and the package of the same version",
            )

    def _foreign(self, reason: str) -> ProtocolError:
        """Returns the error for a program that is not trialrun."""
        return ProtocolError(0, "\n".join([f"{self.program} does not speak the protocol of this package: {reason}", *self._stderr]))

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def is_alive(self) -> bool:
        """Returns False if the program has ended."""
        return not self._closed and self._process.poll() is None

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Sends a request and returns its result."""
        return self._request(method, params, None)[1].result()

    def call_with(self, method: str, params: Mapping[str, Any], functions: Iterable[Union[Assertion, Operator]]) -> Any:
        """Sends a request and returns its result. It may call these functions."""
        callbacks = Callbacks({}, functions)
        return self._request(method, {**params, **callbacks.settings}, _Run(callbacks, None))[1].result()

    def run(
        self,
        params: Mapping[str, Any],
        agents: Optional[Mapping[str, Agent]] = None,
        listener: Optional[Listener] = None,
        functions: Iterable[Union[Assertion, Operator]] = (),
    ) -> Any:
        """Runs tests and returns the result. ``listener`` gets each event, in another thread. Ctrl-C stops the run; a
        second one kills its agents."""
        number, result = self.start(params, agents, listener, functions)
        interrupts = 0
        while True:
            try:
                return result.result() if interrupts == 0 else self._after_interrupt(result)
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts > 2 or result.done():
                    raise
                self.cancel(number)

    def _after_interrupt(self, result: "Future[Any]") -> Any:
        """Waits until the run has ended, and then reports the interrupt."""
        result.exception()
        raise KeyboardInterrupt

    def start(
        self,
        params: Mapping[str, Any],
        agents: Optional[Mapping[str, Agent]] = None,
        listener: Optional[Listener] = None,
        functions: Iterable[Union[Assertion, Operator]] = (),
    ) -> "tuple[int, Future[Any]]":
        """Starts a run. Returns its number, with which it can be cancelled, and its result."""
        callbacks = Callbacks(agents or {}, functions)
        return self._request("run", {**params, **callbacks.settings}, _Run(callbacks, listener))

    def cancel(self, number: int) -> bool:
        """Stops the run with this number. Returns False if it is not in progress."""
        return bool(self.call("cancel", {"id": number})["found"])

    def close(self) -> None:
        """Ends the program, which stops all runs."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        stdin = self._process.stdin
        if stdin is not None:
            try:
                stdin.close()
            except OSError:
                pass
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGTERM)
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._process.wait()
        current = threading.current_thread()
        for thread in self._threads:
            if thread is not current:
                thread.join(GRACE)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass

    def _request(
        self, method: str, params: Mapping[str, Any], run: Optional[_Run]
    ) -> "tuple[int, Future[Any]]":
        answer: "Future[Any]" = Future()
        with self._lock:
            if self._end_reason is not None:
                raise self._end_reason
            self._last += 1
            number = self._last
            self._requests[number] = answer
            if run is not None:
                self._runs[number] = run
        try:
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        except BaseException:
            with self._lock:
                self._requests.pop(number, None)
                self._runs.pop(number, None)
            raise
        return number, answer

    def _send(self, message: Mapping[str, Any]) -> None:
        self._write(_encoded(message))

    def _write(self, line: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            with self._writing:
                stdin.write(line)
                stdin.flush()
        except (OSError, ValueError):
            raise self._gone() from None

    def _gone(self) -> ProtocolError:
        """Returns the error for a program that has ended."""
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return ProtocolError(0, "the connection to trialrun is closed")
        self._threads[0].join(1.0)
        if not self._has_spoken and code == 2 and any("unrecognized subcommand" in line for line in self._stderr):
            return ProtocolError(0, f"{self.program} is too old for this package: update it")
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return ProtocolError(0, "\n".join([f"{self.program} ended unexpectedly ({how})", *self._stderr]))

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        for line in stdout:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if isinstance(message, dict):
                self._has_spoken = True
                self._take(cast(Dict[str, Any], message))
                continue
            shown = line[:200].decode(errors="replace").rstrip()
            if not self._has_spoken:
                return self._end(self._foreign(f"it wrote a line that is not a message: {shown}"))
            self._stderr.append(f"not a message: {shown}")
        self._end()

    def _end(self, error: Optional[ProtocolError] = None) -> None:
        """Fails everything that waits for an answer, and all later requests."""
        error = error or self._gone()
        with self._lock:
            self._end_reason = error
            requests, self._requests = self._requests, {}
            callbacks, self._callbacks = self._callbacks, {}
            runs, self._runs = self._runs, {}
            for cancel in callbacks.values():
                cancel()
        for number, request in requests.items():
            _settle(runs.get(number), functools.partial(request.set_exception, error))

    def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        for line in stderr:
            self._stderr.append(line.decode(errors="replace").rstrip("\n"))

    def _take(self, message: Dict[str, Any]) -> None:
        method = message.get("method")
        if method == "event":
            params = cast(EventParams, message["params"])
            run = self._runs.get(cast(int, params["run"]))
            if run is not None:
                run.take(params)
        elif method in KINDS:
            arguments = (message["id"], method, message["params"])
            threading.Thread(target=self._answer, args=arguments, name="trialrun-callback", daemon=True).start()
        elif method == "cancelCallback":
            with self._lock:
                cancel = self._callbacks.pop(message["params"]["id"], None)
                if cancel is not None:
                    cancel()
        elif method is None:
            self._finish(message)

    def _finish(self, message: Dict[str, Any]) -> None:
        with self._lock:
            number = message.get("id")
            request = self._requests.pop(number, None) if isinstance(number, int) else None
            run = self._runs.pop(number, None) if isinstance(number, int) else None
        if request is None:
            return
        error = message.get("error")
        if error is None:
            _settle(run, lambda: request.set_result(message.get("result")))
        else:
            found = TrialrunError(error.get("code", 0), error.get("message", ""), error.get("data"))
            _settle(run, lambda: request.set_exception(found))

    def _answer(self, number: int, method: str, params: Any) -> None:
        """Lets a function answer a callback."""
        try:
            self._respond(number, method, params)
        except (Cancelled, ProtocolError):
            pass

    def _respond(self, number: int, method: str, params: Any) -> None:
        thread = threading.get_ident()
        with self._lock:
            self._callbacks[number] = lambda: _raise_in(thread)
        answer: Dict[str, Any]
        run = self._runs.get(params["run"])
        if run is None:
            return
        function = run.callbacks.function(method, params)
        try:
            reply = function.call(params)
            if inspect.isawaitable(reply):
                reply = self._await(number, reply)
            answer = {"result": function.result(reply)}
        except Cancelled:
            raise
        except BaseException as error:
            verdict = function.failed(error)
            code = UNREACHABLE if isinstance(error, Unreachable) else GAVE_UP
            failure = {"code": code, "message": reason_of(error)}
            answer = {"error": failure} if verdict is None else {"result": verdict}
        line = self._encoded_answer(number, answer)
        with self._lock:
            is_expected = self._callbacks.pop(number, None) is not None
        if is_expected:
            self._write(line)

    def _encoded_answer(self, number: int, answer: Dict[str, Any]) -> bytes:
        head: Dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        try:
            line = _encoded({**head, **answer})
        except (TypeError, ValueError, RecursionError) as error:
            message = f"the answer cannot be written as JSON: {error}"
            return _encoded({**head, "error": {"code": GAVE_UP, "message": message}})
        if len(line) > MAX_ANSWER:
            message = f"the answer has more than {MAX_ANSWER >> 20} MiB"
            return _encoded({**head, "error": {"code": GAVE_UP, "message": message}})
        return line

    def _await(self, number: int, reply: Awaitable[Any]) -> Any:
        """Waits for a coroutine. All coroutines share one event loop, in a thread of its own."""

        async def wait() -> Any:
            return await reply

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="trialrun-async", daemon=True).start()
            future = asyncio.run_coroutine_threadsafe(wait(), self._loop)
            self._callbacks[number] = lambda: _cancel(future)
        try:
            return future.result()
        except BaseException as error:
            if future.cancelled():
                raise Cancelled from None
            raise error


def _work(steps: "queue.Queue[Optional[Callable[[], None]]]") -> None:
    """Takes steps until there is none."""
    for step in iter(steps.get, None):
        step()


def _settle(run: Optional[_Run], done: Callable[[], None]) -> None:
    """Settles a request, after the listener of its run has got all events."""
    if run is None:
        done()
    else:
        run.finish(done)


def _cancel(future: "Future[Any]") -> None:
    future.cancel()


def _raise_in(thread: int) -> None:
    """Ends a thread that runs Python code. Code that waits outside Python ends later."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Cancelled))


def _encoded(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False, default=_plain).encode() + b"\n"


def _plain(value: object) -> object:
    """Returns a value that JSON has, for values of well-known kinds that it does not have."""
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    if isinstance(value, (set, frozenset, tuple)):
        items: List[Any] = list(cast("set[Any]", value))
        return items
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return cast(Any, value).item()
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not a value of JSON")


def _handshake_limit() -> float:
    written = os.environ.get(HANDSHAKE_VARIABLE)
    if not written:
        return HANDSHAKE
    try:
        limit = float(written)
    except ValueError:
        limit = 0.0
    if not 0 < limit <= threading.TIMEOUT_MAX:
        raise ProtocolError(0, f"{HANDSHAKE_VARIABLE} is {written}, which is not a number of seconds above 0")
    return limit


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("trialrun")
    except metadata.PackageNotFoundError:
        return "0"
