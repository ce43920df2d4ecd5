//! Keys of newer versions of ai-tester that trialrun does not have.

/// Advice on the MCP servers of an agent.
const MCP: &str = "`setting_sources: [project]` in `runner` uses the MCP servers of the project, with Claude Code";

/// Advice on programs that speak the Agent Client Protocol.
const PROGRAM: &str = "`runtime` selects the agent; `agents` in `trialrun.yaml` configures programs and URLs as agents";

/// The keys in all blocks, each with what to use instead.
pub(crate) const KEYS: [(&str, &str); 9] = [
    ("acp_agents", PROGRAM),
    ("agent", PROGRAM),
    ("mcp_profile", MCP),
    ("mcp_profiles", MCP),
    ("mcp_servers", MCP),
    ("mode", "agents run without interaction; `permission_mode` says what they may do"),
    ("reasoning", "write `reasoning` into the `runner` of each scenario, or set `TRIALRUN_REASONING_EFFORT`"),
    ("runs_dir", "runs are recorded in `.trialrun`; `state` in `trialrun.yaml` selects another folder"),
    ("setup_timeout_seconds", "`TRIALRUN_SETUP_TIMEOUT` limits each setup command"),
];
