"""Reads reports with packages of PyPI, and prints what they say as JSON. Usage: read.py SARIF JUNIT…"""

import json
import sys

from junitparser import Error, Failure, JUnitXml, Skipped
from sarif import loader


def outcome(case):
    for result in case.result:
        for kind, name in ((Failure, "failed"), (Error, "broken"), (Skipped, "skipped")):
            if isinstance(result, kind):
                return name
    return "passed"


problems = loader.load_sarif_file(sys.argv[1])
junit = [
    [[case.name, outcome(case)] for suite in JUnitXml.fromfile(path) for case in suite] for path in sys.argv[2:]
]
sarif = [
    [record["Location"], record["Line"], record["Severity"], record["Code"]] for record in problems.get_records()
]
print(json.dumps({"junit": junit, "sarif": sarif}))
