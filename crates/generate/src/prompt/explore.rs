//! Prompts for reading an agent's files.

/// Version of these prompts and of the code that reads their answers, part of the key of a cached profile.
pub(crate) const VERSION: &str = "1";

/// Must choose the files that determine how the agent behaves. Choosing tests and build files is the failure to
/// prevent.
pub(crate) const RANK: &str = "\
You are given the names of the files of a project that contains an AI agent. Choose the files that decide how the agent \
behaves: its prompts, its tools, its rules and its configuration. Return at most 25 names, exactly as they are written, \
the most important one first. Leave out tests, build files and files of the user interface.";

/// Must extract what the file itself states about the agent, each with a passage that proves it. Rules for developers,
/// guesses and general knowledge are the failures to prevent.
pub(crate) const EXTRACT: &str = "\
You are given a part of a file of a project that contains an AI agent. Each line begins with its number. Report what \
this part states about the agent: its purpose, its capabilities, its tools with their parameters, its constraints (what \
it must, must not or may only do, with the exact limits), its other instructions, its domain, its tone, its languages \
and its model. Report nothing that the part does not state, and nothing that is about the developers of the project. \
Write each fact as one short sentence in English. `quote` is a passage of one line, copied exactly and without its \
number, that states the fact, and `line` is the number of that line. If there is nothing to report, return empty lists.";
