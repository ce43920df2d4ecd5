//! Discovers what an agent or a skill promises: its tools, its constraints and its instructions, as a [`Profile`] in
//! which every fact has evidence. Nothing here asks a model or runs an agent.
//!
//! Each kind of source has its own file and a line in [`SOURCES`].

mod profile;
mod source;

pub use profile::{Evidence, Fact, Parameter, Profile, ToolFact};
pub use source::{SOURCES, Source, discover};
