//! Measures the speed of the engine: the median of several rounds, one line each, with its limit if there is one. The
//! exit code is 1 if a limit is exceeded. The first argument that is a directory is used as a project with packages in
//! its `node_modules`. Its `*.test.ts` files are imported as well.

#![allow(clippy::print_stdout, clippy::expect_used)]

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use trialrun_script::{Expression, HostFunction, Library, Options, Runtime, Value};

const BUDGET: Duration = Duration::from_secs(60);
/// Maximum time to create a runtime.
const RUNTIME: Duration = Duration::from_millis(1);
/// Minimum number of simple expressions evaluated per second.
const EVALUATIONS: f64 = 50_000.0;

const TYPESCRIPT: &str = "interface Shape { a: string }
enum Level { Low, High }
export class Thing<T> {
  constructor(private readonly shape: Shape, public items: T[] = []) {}
  level(): Level { return this.items.length > 1 ? Level.High : Level.Low; }
}
export const make = (n: number): Thing<number> => new Thing({ a: 'x' }, [n]);
";

fn median(rounds: usize, mut work: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..rounds).map(|_| work()).collect();
    times.sort();
    times[times.len() / 2]
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let began = Instant::now();
    let done = work();
    let took = began.elapsed();
    drop(done);
    took
}

fn runtime(directory: &Path, library: &Library) -> Runtime {
    let options = Options { library: library.clone(), ..Options::new(directory) };
    Runtime::new(options).expect("a runtime")
}

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not measure.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let project = std::env::args().skip(1).map(PathBuf::from).find(|path| path.is_dir());
    let here = std::env::temp_dir();
    let library = Library::new();
    let made = median(101, || timed(|| runtime(&here, &library)));
    let is_slow = made > RUNTIME;
    println!("runtime: {made:?}, promise {RUNTIME:?}{}", mark(is_slow));
    let are_slow = expressions(&here, &library);
    calls(&here, &library);
    typescript(&here);
    if let Some(project) = project {
        packages(&project.canonicalize().expect("a real path"));
    }
    std::process::exit(i32::from(is_slow || are_slow));
}

fn mark(is_broken: bool) -> &'static str {
    if is_broken { " BROKEN" } else { "" }
}

/// Returns `true` if evaluating an expression that neither throws nor waits is too slow.
fn expressions(here: &Path, library: &Library) -> bool {
    let mut are_slow = false;
    let mut runtime = runtime(here, library);
    let data: Value = serde_json::json!({"threshold": 2, "name": "x", "tags": ["a", "b"]}).into();
    let actual = Value::Number(3.0);
    for text in ["actual > data.threshold", "() => actual > 1", "actual + missing", "await actual"] {
        let expression = Expression::parse(text).expect("an expression");
        let scope = |name: &str| match name {
            "actual" => Some(Cow::Borrowed(&actual)),
            "data" => Some(Cow::Borrowed(&data)),
            _ => None,
        };
        const COUNT: u32 = 20_000;
        let time = median(5, || {
            timed(|| {
                for _ in 0..COUNT {
                    let _ = runtime.evaluate(&expression, &scope, BUDGET);
                }
            })
        });
        let rate = f64::from(COUNT) / time.as_secs_f64();
        let is_promised = !text.contains("missing") && !text.contains("await");
        let is_slow = is_promised && rate < EVALUATIONS;
        are_slow |= is_slow;
        let promise = if is_promised { format!(", promise {EVALUATIONS:.0}/s") } else { String::new() };
        println!("evaluate `{text}`: {:?}, {rate:.0}/s{promise}{}", time / COUNT, mark(is_slow));
        println!("parse `{text}`: {:?}", median(101, || timed(|| Expression::parse(text))));
    }
    are_slow
}

fn calls(here: &Path, library: &Library) {
    let mut runtime = runtime(here, library);
    let text =
        "export const now = (a, b) => a === b;\nexport const later = async (a, b, ask) => (await ask(a)) === b;\n";
    let module = runtime.import_source(text, &here.join("operators.mjs"), BUDGET).expect("a module");
    for name in ["now", "later"] {
        let Some(Value::Function(function)) = runtime.export(&module, name).expect("an export") else { continue };
        let arguments = ["a".into(), "a".into(), Value::HostFunction(HostFunction::new("ask"))];
        const COUNT: u32 = 10_000;
        let time = median(5, || {
            timed(|| {
                for _ in 0..COUNT {
                    let _ =
                        runtime.call(&function, &arguments, BUDGET, &mut |mut request| Ok(request.arguments.remove(0)));
                }
            })
        });
        println!("call `{name}`: {:?}, {:.0}/s", time / COUNT, f64::from(COUNT) / time.as_secs_f64());
    }
}

fn typescript(here: &Path) {
    let text = TYPESCRIPT;
    let name = here.join("bench.ts");
    let time = median(101, || {
        let mut runtime = runtime(here, &Library::new());
        timed(|| runtime.import_source(text, &name, BUDGET).expect("a module"))
    });
    println!("TypeScript of {} bytes, from text: {time:?}", text.len());
}

fn packages(project: &Path) {
    let mut files: Vec<String> = std::fs::read_dir(project)
        .expect("a directory")
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".test.ts"))
        .map(|name| format!("./{name}"))
        .collect();
    files.sort();
    files.extend(["lodash-es", "lodash-es/isEqual", "ajv", "zod", "semver", "ms"].map(String::from));
    for file in files {
        let cold = median(5, || {
            let library = Library::new();
            let mut runtime = runtime(project, &library);
            timed(|| runtime.import(&file, project, BUDGET).map_err(|error| println!("{file}: {error}")))
        });
        let library = Library::new();
        let warm = median(5, || {
            let mut runtime = runtime(project, &library);
            timed(|| runtime.import(&file, project, BUDGET).is_ok())
        });
        println!("import {file}: {cold:?}, with a library that knows it {warm:?}");
    }
}
