//! Compiling what cases assert, on other threads than the one that plans: it is most of planning, and each case's is its
//! own. What comes of it is asked for in the order of the cases, so that problems are told in that order, too.

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

/// How many cases a thread takes at a time.
const CHUNK: usize = 64;
/// Fewer cases than this are compiled as they are planned: starting a thread costs as much as compiling dozens of them.
const WORTH_A_THREAD: usize = 4 * CHUNK;
/// More threads than this are not worth their start.
const MOST_THREADS: usize = 8;

/// A case that is to be planned.
pub(super) struct Wanted<'a> {
    /// Which of all cases it is, from 0.
    pub(super) position: usize,
    pub(super) suite: &'a Suite,
    /// The case, as one of its arms runs it.
    pub(super) variant: Variant,
}

/// What a case asserts, compiled.
pub(super) struct Compilation {
    /// The tools it was compiled for.
    pub(super) tools: Option<&'static [&'static str]>,
    pub(super) checks: Vec<Check>,
    pub(super) problems: Vec<Diagnostic>,
}

/// Compilations that are being made, to be taken case by case.
pub(super) struct Compiling {
    /// Chunks with their numbers, in whatever order; absent where nothing is compiled before it is asked for.
    done: Option<Receiver<(usize, Vec<Compilation>)>>,
    /// Chunks that came before their turn.
    early: BTreeMap<usize, Vec<Compilation>>,
    current: std::vec::IntoIter<Compilation>,
    /// The number of the chunk after the current one.
    next: usize,
}

impl Compiling {
    /// Begins to compile what `wanted` assert, if they are many.
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

    /// What the next case asserts; `None` if nobody has compiled it.
    pub(super) fn next(&mut self) -> Option<Compilation> {
        let done = self.done.as_ref()?;
        if let Some(compilation) = self.current.next() {
            return Some(compilation);
        }
        while !self.early.contains_key(&self.next) {
            // They end without it only by a panic, which goes on where they are joined.
            let (number, chunk) = done.recv().ok()?;
            self.early.insert(number, chunk);
        }
        self.current = self.early.remove(&self.next)?.into_iter();
        self.next += 1;
        self.current.next()
    }
}

/// Compiles chunk after chunk that nobody else has `taken`.
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
            // Those of the first agent, which are nearly always those of every one.
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

/// The agent that `written` names, for what can be known of it without asking it anything.
pub(crate) fn kind_of_agent(settings: &Settings, written: &str) -> Option<&'static dyn Agent> {
    let configured = settings.configured.iter().find(|configured| configured.name == written);
    let kind = configured.map_or(Some(written), |configured| configured.node.get("type")?.as_str())?;
    agent::find(kind).map(|(agent, _)| agent)
}
