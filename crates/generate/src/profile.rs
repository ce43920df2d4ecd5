//! Everything that is known about an agent or a skill.

use model::Excerpt;
use serde::{Deserialize, Serialize};

/// Facts about an agent or a skill, each with its evidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// Name, if a source states it.
    pub name: Option<String>,
    /// Purpose.
    pub description: Option<Fact>,
    /// Tools, by name.
    pub tools: Vec<ToolFact>,
    /// Sentences about what must, must not or may only happen, in the order of their sources.
    pub constraints: Vec<Fact>,
    /// Other instructions, in the order of their sources.
    pub instructions: Vec<Fact>,
    /// What the agent says it can do, in the order of their sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Fact>,
    /// Other properties, such as the model or the tone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<Trait>,
    /// Complete prompts, verbatim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<Fact>,
    /// Conversations to which evidence refers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transcripts: Vec<Transcript>,
}

/// A fact and its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Text.
    pub text: String,
    /// Locations that state it.
    pub evidence: Vec<Evidence>,
}

/// Property of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trait {
    /// Kind of property.
    pub kind: TraitKind,
    /// Its value and its evidence.
    #[serde(flatten)]
    pub fact: Fact,
}

/// Kind of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraitKind {
    /// Subject in which the agent works.
    Domain,
    /// Request that its HTTP interface accepts.
    Endpoint,
    /// Library with which it is built.
    Framework,
    /// Language in which it answers.
    Language,
    /// Model that it uses.
    Model,
    /// Tone in which it answers.
    Tone,
}

impl TraitKind {
    /// All kinds with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("domain", Self::Domain),
        ("endpoint", Self::Endpoint),
        ("framework", Self::Framework),
        ("language", Self::Language),
        ("model", Self::Model),
        ("tone", Self::Tone),
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("domain", |(name, _)| name)
    }
}

/// Conversation with an agent, or the tool calls of a recorded one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// Name, which is the `file` of evidence from it.
    pub name: String,
    /// One line for each message and each tool call.
    pub lines: Vec<String>,
}

/// Location that states a fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// File as the user would write it, or the name of a transcript or another source.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Text of that line.
    pub text: String,
    /// Kind of location.
    pub kind: EvidenceKind,
    /// How certain the fact is, from 0 to 1. It is 1 if code, a schema or a prompt states it.
    pub confidence: f64,
}

/// Kind of a location that states a fact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// A file of the user.
    #[default]
    File,
    /// A document from an endpoint or an API.
    Document,
    /// An answer to a probe.
    Probe,
    /// A recorded run.
    Run,
    /// Text on the command line.
    Description,
}

/// A tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolFact {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Parameters, in the order of the source.
    pub parameters: Vec<Parameter>,
    /// Locations that state it.
    pub evidence: Vec<Evidence>,
}

/// Parameter of a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Type as named in its schema, such as `string`, or several types joined by ` or `.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// True if every call must have it.
    pub required: bool,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Evidence {
    /// Returns the evidence for a location in a file.
    pub fn at(excerpt: &Excerpt) -> Self {
        Self::in_file(&excerpt.file, excerpt.line, &excerpt.text)
    }

    /// Returns the evidence for a line of a file.
    pub fn in_file(file: &str, line: usize, text: &str) -> Self {
        let (kind, confidence) = (EvidenceKind::File, 1.0);
        Self { file: file.to_owned(), line, text: text.trim().to_owned(), kind, confidence }
    }

    /// Formats the location: `agent.py:12`.
    pub fn place(&self) -> String {
        match self.kind {
            EvidenceKind::Description => self.file.clone(),
            _ => format!("{}:{}", self.file, self.line),
        }
    }
}

impl Fact {
    /// Creates a fact that one location states.
    pub fn new(text: impl Into<String>, evidence: Evidence) -> Self {
        Self { text: text.into(), evidence: vec![evidence] }
    }
}

impl Profile {
    /// Adds the facts from another source. A fact from two sources has evidence from both. If both have a name, a
    /// description or a list of parameters, the first one is kept.
    pub fn merge(&mut self, other: Self) {
        self.name = self.name.take().or(other.name);
        self.description = self.description.take().or(other.description);
        other.tools.into_iter().for_each(|tool| self.add_tool(tool));
        self.tools.sort_by(|one, other| one.name.cmp(&other.name));
        add(&mut self.constraints, other.constraints);
        add(&mut self.instructions, other.instructions);
        add(&mut self.capabilities, other.capabilities);
        add(&mut self.prompts, other.prompts);
        other.traits.into_iter().for_each(|one| self.add_trait(one));
        self.transcripts.extend(other.transcripts);
    }

    fn add_tool(&mut self, tool: ToolFact) {
        let Some(known) = self.tools.iter_mut().find(|known| known.name == tool.name) else {
            return self.tools.push(tool);
        };
        known.description = known.description.take().or(tool.description);
        if known.parameters.is_empty() {
            known.parameters = tool.parameters;
        }
        add_evidence(&mut known.evidence, tool.evidence);
    }

    fn add_trait(&mut self, one: Trait) {
        let is_same = |known: &&mut Trait| known.kind == one.kind && known.fact.text == one.fact.text;
        match self.traits.iter_mut().find(is_same) {
            Some(known) => add_evidence(&mut known.fact.evidence, one.fact.evidence),
            None => self.traits.push(one),
        }
    }

    /// Returns `true` if it contains no facts.
    pub fn is_empty(&self) -> bool {
        let Self { name, description, tools, constraints, instructions, capabilities, traits, prompts, transcripts: _ } =
            self;
        let facts = [constraints, instructions, capabilities, prompts];
        let is_without_facts = tools.is_empty() && traits.is_empty() && facts.iter().all(|facts| facts.is_empty());
        is_without_facts && name.is_none() && description.is_none()
    }

    /// Changes the evidence for all facts and tools.
    pub fn change_evidence(&mut self, change: impl FnMut(&mut Evidence)) {
        let traits = self.traits.iter_mut().map(|one| &mut one.fact);
        let lists = [&mut self.constraints, &mut self.instructions, &mut self.capabilities, &mut self.prompts];
        let facts = self.description.iter_mut().chain(lists.into_iter().flatten()).chain(traits);
        let tools = self.tools.iter_mut().flat_map(|tool| &mut tool.evidence);
        facts.flat_map(|fact| &mut fact.evidence).chain(tools).for_each(change);
    }

    /// Changes all texts in the profile, to remove secrets.
    pub fn change_texts(&mut self, mut change: impl FnMut(&mut String)) {
        self.name.iter_mut().for_each(&mut change);
        let traits = self.traits.iter_mut().map(|one| &mut one.fact);
        let lists = [&mut self.constraints, &mut self.instructions, &mut self.capabilities, &mut self.prompts];
        let facts = self.description.iter_mut().chain(lists.into_iter().flatten()).chain(traits);
        facts.for_each(|fact| change(&mut fact.text));
        for tool in &mut self.tools {
            change(&mut tool.name);
            tool.description.iter_mut().for_each(&mut change);
            for parameter in &mut tool.parameters {
                change(&mut parameter.name);
                parameter.kind.iter_mut().chain(&mut parameter.description).for_each(&mut change);
            }
        }
        self.change_evidence(|evidence| {
            change(&mut evidence.file);
            change(&mut evidence.text);
        });
        for transcript in &mut self.transcripts {
            change(&mut transcript.name);
            transcript.lines.iter_mut().for_each(&mut change);
        }
    }
}

fn add(facts: &mut Vec<Fact>, others: Vec<Fact>) {
    for fact in others {
        match facts.iter_mut().find(|known| known.text == fact.text) {
            Some(known) => add_evidence(&mut known.evidence, fact.evidence),
            None => facts.push(fact),
        }
    }
}

fn add_evidence(known: &mut Vec<Evidence>, others: Vec<Evidence>) {
    for other in others {
        if !known.iter().any(|one| one.file == other.file && one.line == other.line) {
            known.push(other);
        }
    }
}
