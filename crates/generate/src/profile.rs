//! What is known about an agent or a skill.

use model::Excerpt;
use serde::Serialize;

/// Facts about an agent or a skill, each with its evidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Name, if a source has one.
    pub name: Option<String>,
    /// Purpose.
    pub description: Option<Fact>,
    /// Tools, by name.
    pub tools: Vec<ToolFact>,
    /// Sentences that say what must, must not or may only happen, in the order of their sources.
    pub constraints: Vec<Fact>,
    /// Other instructions, in the order of their sources.
    pub instructions: Vec<Fact>,
}

/// A fact and its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fact {
    /// Text.
    pub text: String,
    /// Places that state it.
    pub evidence: Vec<Evidence>,
}

/// Place that states a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// File as the user would write it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Text of that line.
    pub text: String,
}

/// A tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolFact {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Parameters, in the order of the source.
    pub parameters: Vec<Parameter>,
    /// Places that state it.
    pub evidence: Vec<Evidence>,
}

/// Parameter of a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Type as its schema names it, such as `string`, or several joined by ` or `.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// True if a call must have it.
    pub required: bool,
}

impl Evidence {
    /// Returns the evidence at a place.
    pub fn at(place: &Excerpt) -> Self {
        Self { file: place.file.to_string(), line: place.line, text: place.text.trim().to_owned() }
    }
}

impl Profile {
    /// Adds the facts of another source. The same fact from two sources has both as its evidence; the first name and
    /// description stay.
    pub fn merge(&mut self, other: Self) {
        self.name = self.name.take().or(other.name);
        self.description = self.description.take().or(other.description);
        for tool in other.tools {
            match self.tools.iter_mut().find(|known| known.name == tool.name) {
                Some(known) => {
                    known.description = known.description.take().or(tool.description);
                    if known.parameters.is_empty() {
                        known.parameters = tool.parameters;
                    }
                    known.evidence.extend(tool.evidence);
                }
                None => self.tools.push(tool),
            }
        }
        self.tools.sort_by(|one, other| one.name.cmp(&other.name));
        add(&mut self.constraints, other.constraints);
        add(&mut self.instructions, other.instructions);
    }

    /// Returns `true` if nothing is known.
    pub fn is_empty(&self) -> bool {
        let Self { name, description, tools, constraints, instructions } = self;
        name.is_none() && description.is_none() && tools.is_empty() && constraints.is_empty() && instructions.is_empty()
    }

    /// Changes every text of the profile, for removing secrets.
    pub fn change_texts(&mut self, mut change: impl FnMut(&mut String)) {
        let facts = self.description.iter_mut().chain(&mut self.constraints).chain(&mut self.instructions);
        let mut evidence: Vec<&mut Evidence> = Vec::new();
        for fact in facts {
            change(&mut fact.text);
            evidence.extend(&mut fact.evidence);
        }
        for tool in &mut self.tools {
            tool.description.iter_mut().for_each(&mut change);
            evidence.extend(&mut tool.evidence);
        }
        evidence.into_iter().for_each(|evidence| change(&mut evidence.text));
    }
}

fn add(facts: &mut Vec<Fact>, others: Vec<Fact>) {
    for fact in others {
        match facts.iter_mut().find(|known| known.text == fact.text) {
            Some(known) => known.evidence.extend(fact.evidence),
            None => facts.push(fact),
        }
    }
}
