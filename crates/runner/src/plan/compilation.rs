//! Compiles the assertions of cases on several threads: this is most of the work of planning, and cases are
//! independent of one another.

use std::sync::Arc;

use files::parallel;
use grade::{Check, Context, KnownTools, Scripts};
use model::{Case, Diagnostic, Mocks, Suite};

use super::settings::Settings;
use super::trial::directory_of;
use super::variant::Variant;

/// Number of cases that a thread takes at a time.
const CHUNK: usize = 64;
/// Number of chunks per thread: starting a thread costs as much as compiling dozens of cases.
const CHUNKS_PER_THREAD: usize = 4;

/// A selected case in the variant of one of its arms.
pub(super) struct SelectedCase<'a> {
    /// Position among all cases, from 0.
    pub(super) position: usize,
    pub(super) suite: &'a Suite,
    /// MCP servers and mocked programs, including those of a plug-in that the arm does not have.
    pub(super) mocks: Arc<Mocks>,
    pub(super) variant: Variant,
}

/// Compiled assertions of a case.
pub(super) struct Compilation {
    /// Tools for which the checks were compiled.
    pub(super) tools: KnownTools<'static>,
    pub(super) checks: Vec<Check>,
    pub(super) problems: Vec<Diagnostic>,
}

/// Compiles the assertions of each of `cases`, in their order.
pub(super) fn compile(cases: &[SelectedCase<'_>], settings: &Settings, engine: &Scripts) -> Vec<Compilation> {
    let compiled = parallel::map(cases.chunks(CHUNK).collect(), CHUNKS_PER_THREAD, |chunk| {
        let mut folder = None;
        let compilations = chunk.iter().map(|SelectedCase { suite, mocks, variant: Variant { case, .. }, .. }| {
            let directory = match folder.take() {
                Some((known, directory)) if std::ptr::eq::<Suite>(known, *suite) => directory,
                _ => directory_of(suite),
            };
            // Compiled for the tools of the first agent, which are nearly always those of every agent.
            let agent = settings.agents_of(case).iter().find_map(|written| settings.agent_type(written));
            let tools = agent.map_or_else(KnownTools::default, |agent| agent.known_tools(case));
            let requires_integrity = settings.requires_integrity;
            let context = Context {
                directory: Some(&directory),
                scripts: Some(engine),
                known_tools: tools,
                mocks: Some(mocks),
                requires_integrity,
                answers_in_text: answer_in_text(settings, case),
                case: None,
            };
            let (checks, problems) = grade::compile(case, &context);
            folder = Some((*suite, directory));
            Compilation { tools, checks, problems }
        });
        compilations.collect::<Vec<_>>()
    });
    compiled.into_iter().flatten().collect()
}

/// Returns `true` if all agents of `case` answer with text.
pub(super) fn answer_in_text(settings: &Settings, case: &Case) -> bool {
    let is_text = |written: &String| settings.agent_type(written).is_some_and(|one| one.description().answers_in_text);
    settings.agents_of(case).iter().all(is_text)
}
