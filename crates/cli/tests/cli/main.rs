//! Tests of the whole program: the real binary, real processes, real git. They form one test binary, because linking
//! each file separately takes longer than all its tests. `misbehaviour.rs` is separate, because it measures the memory
//! of all its child processes.

mod action;
mod audit;
mod bot;
mod budgets;
mod calibrate;
mod canaries;
mod canary_tokens;
mod cassettes;
mod circles;
mod claude_code;
mod code;
mod codex;
mod coming_from_agent_skill_eval;
mod coming_from_ai_test_runner;
mod coming_from_ai_tester;
mod coming_from_fabrik;
mod commands;
mod conformance;
mod discover;
mod distribution;
mod docs;
mod edges;
mod evaluation;
mod faults;
mod faulty_providers;
mod fixtures_run;
mod fixtures_vectors;
mod forks;
mod generation;
mod hooks;
#[cfg(target_os = "linux")]
mod hostile;
mod html;
mod integrity;
mod judging;
mod kill;
mod licenses;
mod looking;
mod masking;
mod mcp;
#[cfg(target_os = "linux")]
mod network;
mod observe;
mod opencode;
mod otlp;
mod preference;
mod readers;
mod refusals;
mod regrade;
mod remotes;
mod required_isolation;
mod resume;
mod sandbox;
mod sequential;
mod shop;
mod signals;
mod skill_eval;
mod specimens;
mod subprocess;
mod supervise;
mod trying_again;
mod typescript;
mod vendor;
mod view;
