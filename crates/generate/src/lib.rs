//! Discovers what an agent or a skill promises, and generates tests for these promises.
//!
//! [`discover`] reads sources into a [`Profile`] in which every fact has evidence. Each kind of source has its own
//! file and a line in [`SOURCES`].
//!
//! [`generate()`] asks a model to plan tests for these facts and to write them, as data with a fixed structure. Each
//! test is rendered in one of the [`FORMATS`], run with adversaries by the [`Host`], and written only if these fail.
//! Nothing here runs an agent or writes a file: the host does.

mod answer;
mod brief;
mod candidate;
mod category;
mod coverage;
mod duplicate;
mod exploration;
mod format;
mod generation;
mod interface;
mod observation;
mod plan;
mod profile;
mod prompt;
mod session;
mod source;
mod target;
mod writing;

pub use candidate::{
    AssertionKind, Candidate, ExpectedArgument, PlannedTest, ProposedAssertion, StartingFile, TestScript, Turn,
};
pub use category::{CATEGORIES, Category, Subject, distribute, find as find_category};
pub use coverage::{Covered, ExistingTest};
pub use exploration::{EXPLORATION_VERSION, Exploration, explore};
pub use format::{Context, EvalsError, FORMATS, Format, add_to_evals, find as find_format};
pub use generation::{
    Admitted, Generated, GenerationError, GenerationRequest, Host, Progress, RejectedTest, RenderedTest, Tryout,
    generate, plan_only,
};
pub use interface::{INTERFACE_PATHS, read_interface};
pub use observation::{PROBES, Probe, observe, read_assistant, transcript_files};
pub use profile::{Evidence, EvidenceKind, Fact, Parameter, Profile, ToolFact, Trait, TraitKind, Transcript};
pub use prompt::VERSION as PROMPT_VERSION;
pub use session::{RanCommand, RecordedSession, WrittenFile, scenario_of};
pub use source::{SOURCES, Source, SourceFile, Sources, discover};
pub use target::{Target, targets};
