#!/usr/bin/env python3
"""Compares the rules of trialrun with the official conformance scenarios, on one server over HTTP.

Usage: agreement.py TRIALRUN CONFORMANCE NODE SERVER. Both programs must find the same scenarios broken. Scenarios that
call tools of a special test server have no counterpart.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

# Scenario, and the rules that are about the same requirement.
PAIRS = {
    "server-initialize": ["first_result", "version"],
    "ping": ["ping"],
    "logging-set-level": ["log_level"],
    "tools-list": ["list_tools", "input_schemas"],
    "resources-list": ["list_resources"],
    "prompts-list": ["list_prompts"],
    "dns-rebinding-protection": ["http_origin"],
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("the server does not listen")


def official(conformance, node, url):
    output = subprocess.run([node, conformance, "server", "--url", url], capture_output=True, text=True).stdout
    return {name: mark == "✓" for mark, name in re.findall(r"^([✓✗]) ([\w-]+):", output, re.M)}


def ours(trialrun, url):
    with tempfile.TemporaryDirectory() as folder:
        suite, events = os.path.join(folder, "protocol.yaml"), os.path.join(folder, "events.jsonl")
        with open(suite, "w") as file:
            file.write("suite: mcp\nprotocol: true\ntimeout: 5m\n")
        arguments = ["run", suite, "--agent", f"mcp:{url}", "--state", folder, "--report", f"jsonl={events}", "--quiet"]
        subprocess.run([trialrun, *arguments], cwd=folder, check=False)
        with open(events) as file:
            results = [json.loads(line)["event"].get("result") for line in file]
        for result in results:
            if isinstance(result, dict) and "rules" in result:
                return {rule["id"].split(".")[-1]: rule["result"] == "kept" for rule in result["rules"]}
    sys.exit("trialrun checked no rules")


def main():
    trialrun, conformance, node, server = sys.argv[1:]
    port = free_port()
    environment = {**os.environ, "PORT": str(port)}
    started = subprocess.Popen(
        [server, "streamableHttp"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(port)
        url = f"http://127.0.0.1:{port}/mcp"
        theirs, rules = official(conformance, node, url), ours(trialrun, url)
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait()
    differences = 0
    for scenario, ids in PAIRS.items():
        kept = all(rules[rule] for rule in ids)
        differences += theirs[scenario] != kept
        print(f"{scenario}: official {theirs[scenario]}, trialrun {kept}")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
