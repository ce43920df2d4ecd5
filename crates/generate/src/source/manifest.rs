//! A project's manifests and README: its name, its purpose and the libraries that it uses.

use std::sync::LazyLock;

use regex::Regex;

use super::text;
use crate::profile::{Evidence, Fact, Profile, Trait, TraitKind};

/// File names of manifests.
pub(super) const MANIFESTS: [&str; 7] =
    ["package.json", "pyproject.toml", "Cargo.toml", "requirements.txt", "setup.cfg", "go.mod", "composer.json"];

/// Confidence in statements about the agent in a README, which is written by hand and may be out of date.
const README: f64 = 0.8;

/// A dependency on an agent library, at the beginning of a line in a manifest.
static FRAMEWORK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = r#"^\s*(?:require\s+)?["']?(?:github\.com/[\w-]+/)?(@anthropic-ai/[\w-]+|@openai/agents|@ai-sdk/[\w-]+|@langchain/[\w-]+|@mastra/core|@modelcontextprotocol/sdk|@google/genai|openai-agents|openai|anthropic|claude-agent-sdk|langchain[\w-]*|langgraph[\w-]*|pydantic-ai[\w-]*|crewai[\w-]*|autogen[\w-]*|llama-index[\w-]*|llama_index|smolagents|google-adk|google-genai|fastmcp|mcp-go|mcp|rmcp|rig-core|async-openai|go-openai|semantic-kernel|strands-agents|haystack-ai|dspy|litellm|ai)["']?\s*(?:[=:<>~!,\[;@]|\sv\d|"|'|$)"#;
    Regex::new(names).ok()
});

/// A field in a manifest: `name = "…"` or `"name": "…"`.
static FIELD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"^\s*"?(name|description)"?\s*[=:]\s*["']([^"']+)["']"#).ok());

/// Titles of the README sections that say what the agent must do. Other sections are for its developers.
static RULES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(rules?|constraints?|guardrails?|polic(y|ies)|limits?|limitations?|boundaries|must not)\b").ok()
});

/// Sections of a manifest whose fields are about the project itself.
const SECTIONS: [&str; 4] = ["[project]", "[package]", "[tool.poetry]", "[metadata]"];

/// Returns the facts in a manifest.
pub(super) fn read(content: &str, shown: &str) -> Profile {
    let mut profile = Profile::default();
    let mut is_own = !content.lines().any(|line| line.trim_start().starts_with('['));
    let mut depth = 0_usize;
    for (at, line) in content.lines().enumerate() {
        let evidence = || Evidence::in_file(shown, at + 1, line);
        if line.starts_with('[') {
            is_own = SECTIONS.contains(&line.trim());
        }
        // Fields of nested JSON objects are about something else.
        let is_top = depth <= 1;
        depth = (depth + line.matches('{').count()).saturating_sub(line.matches('}').count());
        let field = FIELD.as_ref().and_then(|field| field.captures(line)).filter(|_| is_own && is_top);
        match field.as_ref().map(|field| (&field[1], &field[2])) {
            Some(("name", value)) => profile.name = profile.name.take().or_else(|| Some(value.to_owned())),
            Some((_, value)) if profile.description.is_none() => {
                profile.description = Some(Fact::new(value, evidence()));
            }
            _ => {}
        }
        let dependency = line.trim_start().trim_start_matches("dependencies = [").trim_start();
        if let Some(name) = FRAMEWORK.as_ref().and_then(|names| names.captures(dependency)).filter(|_| field.is_none())
        {
            let one = Trait { kind: TraitKind::Framework, fact: Fact::new(&name[1], evidence()) };
            profile.merge(Profile { traits: vec![one], ..Profile::default() });
        }
    }
    profile
}

/// Returns `true` if a file is a README.
pub(super) fn is_readme(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    stem.eq_ignore_ascii_case("readme")
}

/// Returns the purpose stated in a README: its first paragraph.
pub(super) fn purpose(content: &str, shown: &str) -> Profile {
    let is_text = |line: &str| {
        let line = line.trim();
        !line.is_empty()
            && !["#", "[!", "!", "<", "---", "===", "```", "|", ">"].iter().any(|start| line.starts_with(start))
    };
    let lines = || content.lines().enumerate();
    let mut profile = Profile::default();
    let Some((start, first)) = lines().find(|(_, line)| is_text(line) && text::is_sentence(line)) else {
        return profile;
    };
    let paragraph: Vec<&str> = lines().skip(start).map(|(_, line)| line).take_while(|line| is_text(line)).collect();
    let evidence = Evidence { confidence: README, ..Evidence::in_file(shown, start + 1, first) };
    profile.description = Some(Fact::new(model::text::folded(&paragraph.join(" ")), evidence));
    profile
}

/// Returns the statements in the README sections that are about rules.
pub(super) fn rules(content: &str, shown: &str) -> Profile {
    let lines: Vec<&str> = content.lines().collect();
    let is_about_rules = |title: &str| RULES.as_ref().is_some_and(|rules| rules.is_match(title));
    let mut profile = Profile::default();
    for section in text::sections(content, is_about_rules) {
        let start = section.start;
        profile.merge(text::read_at(&content[section], |at| {
            let number = content[..start + at].matches('\n').count();
            Evidence { confidence: README, ..Evidence::in_file(shown, number + 1, lines.get(number).unwrap_or(&"")) }
        }));
    }
    profile
}
