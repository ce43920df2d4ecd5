"""Spans of functions: what an agent did, as its instrumentation tells it."""

import asyncio
import inspect
import threading
from typing import Any, Awaitable, Callable, Dict, List, Optional, TypeVar

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from ._protocol import TraceTarget

M = TypeVar("M")

MAX_ATTRIBUTES = 100_000
"""Limit for the attributes of a span, as for programs that trialrun starts."""


class Collector(SpanProcessor):
    """Keeps the spans of replies in progress, by their trace."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: Dict[int, List[ReadableSpan]] = {}
        self._providers: List[TracerProvider] = []

    def begin(self, trace_id: int) -> None:
        """Keeps the spans of a trace from now on."""
        with self._lock:
            self._kept[trace_id] = []
            provider = trace.get_tracer_provider()
            if not isinstance(provider, TracerProvider):
                # The program has none, so its instrumentation has recorded nothing yet.
                provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=MAX_ATTRIBUTES))
                trace.set_tracer_provider(provider)
            if provider not in self._providers:
                provider.add_span_processor(self)
                self._providers.append(provider)

    def take(self, trace_id: int) -> List[ReadableSpan]:
        """Returns the spans of a trace, and keeps no more of them."""
        with self._lock:
            return self._kept.pop(trace_id, [])

    def on_start(self, span: Span, parent_context: Optional[Context] = None) -> None:
        """Does nothing: only finished spans are sent."""

    def on_end(self, span: ReadableSpan) -> None:
        """Keeps a finished span of a reply in progress."""
        ids = span.get_span_context()
        with self._lock:
            kept = None if ids is None else self._kept.get(ids.trace_id)
            if kept is not None:
                kept.append(span)

    def shutdown(self) -> None:
        """Does nothing: spans are sent with each reply."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Does nothing: spans are sent with each reply."""
        return True


_collector = Collector()


class _Reply:
    """The spans of a reply: those within one that covers the whole reply."""

    def __init__(self, target: TraceTarget) -> None:
        _, trace_id, span_id, _ = target["traceparent"].split("-")
        self._trace_id = int(trace_id, 16)
        self._endpoint = target["endpoint"]
        _collector.begin(self._trace_id)
        sampled = TraceFlags(TraceFlags.SAMPLED)
        message = NonRecordingSpan(SpanContext(self._trace_id, int(span_id, 16), is_remote=True, trace_flags=sampled))
        parent = trace.set_span_in_context(message, Context())
        self._whole = trace.get_tracer("trialrun").start_span("reply", parent)
        self._context = trace.set_span_in_context(self._whole, parent)
        self._token: Any = None

    def __enter__(self) -> None:
        self._token = contexts.attach(self._context)

    def __exit__(self, *_: object) -> None:
        contexts.detach(self._token)

    def send(self) -> None:
        """Sends the spans."""
        self._whole.end()
        spans = _collector.take(self._trace_id)
        if spans:
            OTLPSpanExporter(endpoint=f"{self._endpoint}/v1/traces").export(spans)


def call(function: Callable[[M], Any], message: M, target: TraceTarget) -> Any:
    """Calls a function, and sends the spans of its reply before it is returned. The function may be a coroutine."""
    whole = _Reply(target)
    is_done = True
    try:
        with whole:
            reply = function(message)
        if inspect.isawaitable(reply):
            is_done = False
            return _finish(reply, whole)
        return reply
    finally:
        if is_done:
            whole.send()


async def _finish(reply: Awaitable[Any], whole: _Reply) -> Any:
    try:
        with whole:
            return await reply
    finally:
        # The event loop also serves other replies.
        await asyncio.get_running_loop().run_in_executor(None, whole.send)
