"""A receiver for OpenTelemetry on loopback. It parses requests with the official protobuf classes.

Prints its port, then one line of JSON for each span and log record.
"""

import gzip
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

KINDS = {
    "/v1/traces": (traces.ExportTraceServiceRequest, traces.ExportTraceServiceResponse),
    "/v1/logs": (logs.ExportLogsServiceRequest, logs.ExportLogsServiceResponse),
}


def value(any_value):
    """Returns the value of an attribute."""
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(item) for item in any_value.array_value.values]
    return None if kind is None else getattr(any_value, kind)


def attributes(record):
    return {attribute.key: value(attribute.value) for attribute in record.attributes}


def records(request):
    """Returns the spans and log records of a request as dictionaries."""
    for resource in getattr(request, "resource_spans", []):
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "signal": "span",
                    "service": attributes(resource.resource).get("service.name"),
                    "name": span.name,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
                    "attributes": attributes(span),
                }
    for resource in getattr(request, "resource_logs", []):
        for scope in resource.scope_logs:
            for log in scope.log_records:
                yield {
                    "signal": "log",
                    "name": log.event_name,
                    "trace": log.trace_id.hex(),
                    "span": log.span_id.hex(),
                    "attributes": attributes(log),
                }


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        request, response = KINDS[self.path]
        for record in records(request.FromString(body)):
            print(json.dumps(record), flush=True)
        answer = response().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
server.serve_forever()
