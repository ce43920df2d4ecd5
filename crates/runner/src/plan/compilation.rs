//! Compiles the assertions of cases on separate threads: this is most of the work of planning, and cases are
//! independent of each other. Results are taken in the order of the cases, so problems are also reported in that
//! order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use grade::{Check, Context, KnownTools, Scripts};
use model::{Diagnostic, Suite};

use super::settings::Settings;
use super::trial::directory_of;
use super::variant::Variant;
use crate::grader::STACK;

/// Number of cases that a thread takes at a time.
const CHUNK: usize = 64;
/// Minimum number of cases per thread: starting a thread costs as much as compiling dozens of cases.
const WORTH_A_THREAD: usize = 4 * CHUNK;
/// Maximum number of threads. Further ones do not save enough time to be worth starting.
const MOST_THREADS: usize = 8;

/// A selected case in the variant of one of its arms.
pub(super) struct SelectedCase<'a> {
    /// Position among all cases, from 0.
    pub(super) position: usize,
    pub(super) suite: &'a Suite,
    pub(super) variant: Variant,
}

/// Compiled assertions of a case.
pub(super) struct Compilation {
    /// Tools that the checks were compiled for.
    pub(super) tools: KnownTools<'static>,
    pub(super) checks: Vec<Check>,
    pub(super) problems: Vec<Diagnostic>,
}

/// Compilations in progress, taken case by case.
pub(super) struct Compilations {
    /// Finished chunks with their numbers, in any order; `None` if nothing is compiled ahead.
    done: Option<Receiver<(usize, Vec<Compilation>)>>,
    /// Chunks that arrived before their turn.
    early: BTreeMap<usize, Vec<Compilation>>,
    current: std::vec::IntoIter<Compilation>,
    /// Number of the chunk after the current one.
    next: usize,
}

impl Compilations {
    /// Starts to compile the assertions of `cases`, if there are enough cases.
    pub(super) fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        cases: &'env [SelectedCase<'env>],
        settings: &'env Settings,
        engine: &'env Scripts,
    ) -> Self {
        let mut compilations = Self { done: None, early: BTreeMap::new(), current: Vec::new().into_iter(), next: 0 };
        // One processor is busy with planning.
        let others = std::thread::available_parallelism().map_or(0, |threads| threads.get() - 1);
        let threads = others.min(cases.len() / WORTH_A_THREAD).min(MOST_THREADS);
        if threads == 0 {
            return compilations;
        }
        let (done, made) = channel();
        let taken = Arc::new(AtomicUsize::new(0));
        let start = |_| {
            let (done, taken) = (done.clone(), Arc::clone(&taken));
            let thread = std::thread::Builder::new().name("compile".into()).stack_size(STACK);
            thread.spawn_scoped(scope, move || compile(cases, settings, engine, &taken, &done)).is_ok()
        };
        let started = (0..threads).filter(|number| start(*number)).count();
        compilations.done = (started > 0).then_some(made);
        compilations
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
    cases: &[SelectedCase<'_>],
    settings: &Settings,
    engine: &Scripts,
    taken: &AtomicUsize,
    done: &Sender<(usize, Vec<Compilation>)>,
) {
    loop {
        let number = taken.fetch_add(1, Ordering::Relaxed);
        let Some(chunk) = cases.chunks(CHUNK).nth(number) else { return };
        let mut folder = None;
        let compilations = chunk.iter().map(|SelectedCase { suite, variant: Variant { case, .. }, .. }| {
            let directory = match folder.take() {
                Some((of, directory)) if std::ptr::eq::<Suite>(of, *suite) => directory,
                _ => directory_of(suite),
            };
            // Compiled for the tools of the first agent, which are nearly always those of every agent.
            let agent = settings.agents_of(case).iter().find_map(|written| settings.agent_type(written));
            let tools = agent.map_or_else(KnownTools::default, |agent| agent.known_tools(case));
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
