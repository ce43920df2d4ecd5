"""Tests AI agents, agent skills and prompts end to end.

``run`` runs suites, ``trial`` runs a case that is written in Python, ``agent`` makes a function an agent, and ``expect``
matches a value.
"""

from ._agent import Agent, Message, Unreachable, agent
from ._client import Client, ProtocolError, TrialrunError
from ._expect import Expectation, Match, MismatchError, expect
from ._program import ProgramNotFound, find_program
from ._protocol import Answer, Event, Failure, Finding, PlannedTrial, Problem, ToolCall, Trial, Turn, Usage
from ._run import Check, Comparison, Run, TrialsFailed, check, compare, list_trials, run, show, trial

__all__ = [
    "Agent",
    "Answer",
    "Check",
    "Client",
    "Comparison",
    "Event",
    "Expectation",
    "Failure",
    "Finding",
    "Match",
    "Message",
    "MismatchError",
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
    "agent",
    "check",
    "compare",
    "expect",
    "find_program",
    "list_trials",
    "run",
    "show",
    "trial",
]
