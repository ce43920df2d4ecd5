"""Tests AI agents, agent skills and prompts end to end.

``run`` runs suites, ``trial`` runs a case that is written in Python, and ``expect`` matches a value. ``agent`` makes a
function an agent, ``assertion`` an assertion, and ``operator`` an operator.
"""

from ._agent import Agent, Message, Unreachable, agent
from ._client import Client, ProtocolError, TrialrunError
from ._expect import Expectation, Match, MismatchError, expect
from ._function import Assertion, Evidence, Operator, assertion, operator
from ._program import ProgramNotFound, find_program
from ._protocol import Answer, Event, Failure, Finding, PlannedTrial, Problem, ToolCall, Trial, Turn, Usage, Verdict
from ._run import Check, Comparison, Run, TrialsFailed, check, compare, list_trials, run, show, trial

__all__ = [
    "Agent",
    "Answer",
    "Assertion",
    "Check",
    "Client",
    "Comparison",
    "Event",
    "Evidence",
    "Expectation",
    "Failure",
    "Finding",
    "Match",
    "Message",
    "MismatchError",
    "Operator",
    "PlannedTrial",
    "Problem",
    "ProgramNotFound",
    "ProtocolError",
    "Run",
    "ToolCall",
    "Trial",
    "TrialrunError",
    "TrialsFailed",
    "Turn",
    "Unreachable",
    "Usage",
    "Verdict",
    "agent",
    "assertion",
    "check",
    "compare",
    "expect",
    "find_program",
    "list_trials",
    "operator",
    "run",
    "show",
    "trial",
]

# Errors are shown under the names by which they are imported.
for _error in (MismatchError, ProgramNotFound, ProtocolError, TrialrunError, TrialsFailed, Unreachable):
    _error.__module__ = __name__
