//! Compiles the assertions of cases on other threads than the planning one: it is most of the work of planning, and
//! cases are independent of each other. Results are taken in the order of the cases, so problems are reported in that
//! order too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use agent::{self, Agent};
use grade::{Check, Context, Scripts};
use model::{Diagnostic, Suite};

use super::variant::Variant;
use super::{Settings, agents_of, directory_of, known_tools};
use crate::grader::STACK;

/// Number of cases that a thread takes at a time.
const CHUNK: usize = 64;
/// Minimum number of cases per thread: starting a thread costs as much as compiling dozens of cases.
const WORTH_A_THREAD: usize = 4 * CHUNK;
/// Maximum number of threads. More are not worth their start.
const MOST_THREADS: usize = 8;

/// A case that is to be planned.
pub(super) struct Wanted<'a> {
    /// Position among all cases, from 0.
    pub(super) position: usize,
    pub(super) suite: &'a Suite,
    /// The case as one of its arms runs it.
    pub(super) variant: Variant,
}

/// Compiled assertions of a case.
pub(super) struct Compilation {
    /// Tools that the checks were compiled for.
    pub(super) tools: Option<&'static [&'static str]>,
    pub(super) checks: Vec<Check>,
    pub(super) problems: Vec<Diagnostic>,
}

/// Compilations in progress, taken case by case.
pub(super) struct Compiling {
    /// Finished chunks with their numbers, in any order; `None` if nothing is compiled ahead.
    done: Option<Receiver<(usize, Vec<Compilation>)>>,
    /// Chunks that arrived before their turn.
    early: BTreeMap<usize, Vec<Compilation>>,
    current: std::vec::IntoIter<Compilation>,
    /// Number of the chunk after the current one.
    next: usize,
}

impl Compiling {
    /// Starts to compile the assertions of `wanted`, if there are enough cases.
    pub(super) fn begin<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        wanted: &'env [Wanted<'env>],
        settings: &'env Settings,
        engine: &'env Scripts,
    ) -> Self {
        let mut compiling = Self { done: None, early: BTreeMap::new(), current: Vec::new().into_iter(), next: 0 };
        // One processor is busy with planning.
        let others = std::thread::available_parallelism().map_or(0, |threads| threads.get() - 1);
        let threads = others.min(wanted.len() / WORTH_A_THREAD).min(MOST_THREADS);
        if threads == 0 {
            return compiling;
        }
        let (done, made) = channel();
        let taken = Arc::new(AtomicUsize::new(0));
        let hire = |_| {
            let (done, taken) = (done.clone(), Arc::clone(&taken));
            let thread = std::thread::Builder::new().name("compile".into()).stack_size(STACK);
            thread.spawn_scoped(scope, move || compile(wanted, settings, engine, &taken, &done)).is_ok()
        };
        let hired = (0..threads).filter(|number| hire(*number)).count();
        compiling.done = (hired > 0).then_some(made);
        compiling
    }

    /// Returns the compilation of the next case; `None` if nothing is compiled ahead.
    pub(super) fn next(&mut self) -> Option<Compilation> {
        let done = self.done.as_ref()?;
        if let Some(compilation) = self.current.next() {
            return Some(compilation);
        }
        while !self.early.contains_key(&self.next) {
            // The threads end without it only if one panics; joining them continues the panic.
            let (number, chunk) = done.recv().ok()?;
            self.early.insert(number, chunk);
        }
        self.current = self.early.remove(&self.next)?.into_iter();
        self.next += 1;
        self.current.next()
    }
}

/// Compiles chunk after chunk that no other thread has `taken`.
fn compile(
    wanted: &[Wanted<'_>],
    settings: &Settings,
    engine: &Scripts,
    taken: &AtomicUsize,
    done: &Sender<(usize, Vec<Compilation>)>,
) {
    loop {
        let number = taken.fetch_add(1, Ordering::Relaxed);
        let Some(chunk) = wanted.chunks(CHUNK).nth(number) else { return };
        let mut folder = None;
        let compilations = chunk.iter().map(|Wanted { suite, variant: Variant { case, .. }, .. }| {
            let directory = match folder.take() {
                Some((of, directory)) if std::ptr::eq::<Suite>(of, *suite) => directory,
                _ => directory_of(suite),
            };
            // Compiled for the tools of the first agent, which are nearly always those of every agent.
            let agent = agents_of(settings, case).iter().find_map(|written| kind_of_agent(settings, written));
            let tools = agent.and_then(|agent| known_tools(agent, case));
            let context =
                Context { directory: Some(&directory), scripts: Some(engine), known_tools: tools, case: None };
            let (checks, problems) = grade::compile(case, &context);
            folder = Some((*suite, directory));
            Compilation { tools, checks, problems }
        });
        if done.send((number, compilations.collect())).is_err() {
            return;
        }
    }
}

/// Returns the type of the agent that `written` names, without checking the agent.
pub(crate) fn kind_of_agent(settings: &Settings, written: &str) -> Option<&'static dyn Agent> {
    let configured = settings.configured.iter().find(|configured| configured.name == written);
    let kind = configured.map_or(Some(written), |configured| configured.node.get("type")?.as_str())?;
    embedded(settings, kind).or_else(|| agent::find(kind).map(|(agent, _)| agent))
}

/// Returns the agent of the embedding program that is called `name`.
pub(super) fn embedded(settings: &Settings, name: &str) -> Option<&'static dyn Agent> {
    let found = settings.embedded.iter().find(|agent| agent.name() == name)?;
    Some(*found)
}
