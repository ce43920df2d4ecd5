//! `trialrun discover`.

use std::process::ExitCode;

use generate::{Evidence, Fact, Parameter, Profile, ToolFact, Trait};
use report::columns::{padded, widest, width};
use serde::Serialize;

use crate::discovery::{Discovered, SourceArgs, discover, no_answer};
use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::language_model;
use crate::place;
use crate::terminal::Terminal;
use session::overrides::Overrides;

/// Maximum width of a fact; if it is wider, its location goes on the next line.
const WIDEST: usize = 72;

/// Arguments of `discover`.
#[derive(Debug, clap::Args)]
pub struct DiscoverArgs {
    #[command(flatten)]
    sources: SourceArgs,
    /// Model that also reads the files and the answers, as `provider:model`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The profile as a document.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    profile: &'a Profile,
}

/// Shows what the sources say about an agent or a skill, and where they say it.
pub fn run(global: &Global, args: &DiscoverArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let context = place::open(global, &[])?;
    let model = match &args.model {
        Some(name) => {
            let settings = context.settings(&context.resolve(&Overrides::default())?);
            language_model::open(Some(name), &settings, &context)?
        }
        None => None,
    };
    let sources = args.sources.with_named_agent(&context).in_project(&context);
    let Discovered { profile, silence, .. } = discover(&sources, &context, model.as_ref(), false, terminal)?;
    if args.json {
        terminal.json(&Document { schema: "trialrun.profile/1", profile: &profile });
    } else {
        // The agent wrote part of this text.
        terminal.out(&report::clean(&text(&profile)));
    }
    if let (Some(agent), Some(reason)) = (&sources.agent, silence) {
        return Err(CliError::usage(no_answer(agent, &reason))
            .hint("start it, or leave out `--agent`; all other sources were read"));
    }
    if profile.is_empty() {
        terminal.err("nothing was found; name the agent's source code or prompt, or let a model read with `--model`\n");
    }
    Ok(ExitCode::from(if profile.is_empty() { exit::NOTHING } else { exit::PASSED }))
}

fn text(profile: &Profile) -> String {
    let mut text = String::new();
    if let Some(name) = &profile.name {
        text.push_str(&format!("{name}\n"));
    }
    if let Some(description) = &profile.description {
        text.push_str(&lines(&[(&description.text, &description.evidence)]));
    }
    let tools: Vec<(String, &[Evidence])> =
        profile.tools.iter().map(|tool| (signature(tool), tool.evidence.as_slice())).collect();
    let tools: Vec<(&String, &[Evidence])> = tools.iter().map(|(text, evidence)| (text, *evidence)).collect();
    section(&mut text, "tools", &tools);
    section(&mut text, "constraints", &facts(&profile.constraints));
    section(&mut text, "instructions", &facts(&profile.instructions));
    section(&mut text, "capabilities", &facts(&profile.capabilities));
    let traits: Vec<(String, &[Evidence])> =
        profile.traits.iter().map(|one| (property(one), one.fact.evidence.as_slice())).collect();
    let traits: Vec<(&String, &[Evidence])> = traits.iter().map(|(text, evidence)| (text, *evidence)).collect();
    section(&mut text, "properties", &traits);
    text
}

fn property(one: &Trait) -> String {
    format!("{}: {}", one.kind.name(), one.fact.text)
}

fn facts(facts: &[Fact]) -> Vec<(&String, &[Evidence])> {
    facts.iter().map(|fact| (&fact.text, fact.evidence.as_slice())).collect()
}

fn section(text: &mut String, title: &str, facts: &[(&String, &[Evidence])]) {
    if !facts.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}{title} ({})\n{}", facts.len(), lines(facts)));
    }
}

/// Formats one line per fact, with its locations on the right.
fn lines(facts: &[(&String, &[Evidence])]) -> String {
    let column = widest(facts.iter().map(|(text, _)| text.as_str()).filter(|text| width(text) <= WIDEST));
    let line = |(text, evidence): &(&String, &[Evidence])| {
        let places: Vec<String> = evidence.iter().map(Evidence::place).collect();
        let places = places.join(", ");
        match width(text) > WIDEST {
            true => format!("  {text}\n  {}  {places}\n", padded("", column)),
            false => format!("  {}  {places}\n", padded(text, column)),
        }
    };
    facts.iter().map(line).collect()
}

/// Formats a tool with its parameters; optional ones are marked with a question mark.
fn signature(tool: &ToolFact) -> String {
    let parameter = |one: &Parameter| {
        let kind = one.kind.as_ref().map(|kind| format!(": {kind}")).unwrap_or_default();
        format!("{}{}{kind}", one.name, if one.required { "" } else { "?" })
    };
    let parameters: Vec<String> = tool.parameters.iter().map(parameter).collect();
    if parameters.is_empty() { tool.name.clone() } else { format!("{}({})", tool.name, parameters.join(", ")) }
}
