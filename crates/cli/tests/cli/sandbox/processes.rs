//! The contract for processes in sandboxes of every kind.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use model::{Change, Excerpt, FixtureFile, Fixtures, NetworkPolicy};
use sandbox::supervise::{Contained, Network, Output, Supervisor, run};
use sandbox::{Host, Registry, RepositoryDetail, Request, Sandbox, SandboxFactory, SandboxOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::kind::{Elsewhere, Kind};

/// Defines a test for each rule of the contract.
macro_rules! process_tests {
    ($kind:path) => {
        $crate::sandbox::processes::process_tests! { $kind, [] }
    };
    ($kind:path, $attributes:tt) => {
        $crate::sandbox::kind::tests_of! { async processes, $kind, $attributes:
            a_process_finds_the_files_of_the_fixture_in_clean_directories
            the_list_of_changes_is_exact
            variables_reach_a_process_unchanged_and_no_others_do
            the_exit_code_is_that_of_the_program
            input_reaches_the_program
            a_program_that_is_asked_to_end_can_say_goodbye
            no_process_is_left_of_a_killed_program
            a_program_is_killed_after_the_timeout
            long_output_is_shortened_and_does_not_block
            commands_on_a_copy_change_only_the_copy
            what_is_required_holds
            closing_leaves_nothing_behind
        }
    };
}
pub(super) use process_tests;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Content of a user's file that no sandbox needs.
const SECRET: &str = "dummy-secret-of-the-user";

/// A sandbox with two files and a variable, on a machine that holds a secret.
struct Bench {
    root: tempfile::TempDir,
    kind: &'static str,
    factory: SandboxFactory,
    sandbox: Arc<dyn Sandbox>,
    secret: PathBuf,
    elsewhere: Option<Arc<dyn Elsewhere>>,
}

impl Bench {
    async fn new(kind: &Kind) -> Self {
        let root = tempfile::tempdir().unwrap();
        let [home, temp] = ["home", "temp"].map(|name| root.path().canonicalize().unwrap().join(name));
        [&home, &temp].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        let secret = home.join("secret");
        fs::write(&secret, SECRET).unwrap();
        let own = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("SECRET_TOKEN", SECRET)];
        let mut env: BTreeMap<String, String> = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        env.extend(kind.env.iter().cloned());
        let host =
            Host { env, home: Some(home), temp, supervisor: Supervisor::new(env!("CARGO_BIN_EXE_trialrun")).unwrap() };
        let options = SandboxOptions { network: NetworkPolicy::None, ..kind.options.clone() };
        let factory = SandboxFactory::open_isolated(kind.name, &host, &Registry::new(), &options).unwrap();
        let sandbox = factory.make(request()).await.unwrap();
        Self { root, kind: kind.name, factory, sandbox, secret, elsewhere: kind.elsewhere.clone() }
    }

    async fn run(&self, script: &str) -> Output {
        self.run_with(script, &[], TIMEOUT, 1 << 16).await
    }

    async fn run_with(&self, script: &str, extra: &[(String, String)], timeout: Duration, most: usize) -> Output {
        let args = [OsStr::new("-c"), OsStr::new(script)];
        run(self.sandbox.command(OsStr::new("/bin/sh"), &args, extra), timeout, most).await.unwrap()
    }

    /// Returns the path on this machine for a path in the sandbox.
    fn real(&self, path: &Path) -> PathBuf {
        self.elsewhere.as_ref().map_or_else(|| path.to_owned(), |elsewhere| elsewhere.real(path))
    }

    /// Runs a script, and returns its output on both streams.
    async fn text(&self, script: &str) -> String {
        let output = self.run(script).await;
        format!("{}{}", output.stdout.text(), output.stderr.text()).trim().to_owned()
    }
}

fn request() -> Request {
    let source = Excerpt { file: "a.yaml".into(), line: 1, column: 1, length: 1, text: "x".into(), skipped: 0 };
    let file = |path: &str, content: &str| FixtureFile {
        path: path.into(),
        content: content.as_bytes().into(),
        executable: false,
        source: source.clone(),
    };
    let fixtures = Fixtures {
        git_init: true,
        files_committed: vec![file("kept", "kept\n"), file("changed", "old\n"), file("removed", "x\n")],
        env: vec![("OF_FIXTURE".into(), "from the fixture".into())],
        ..Fixtures::default()
    };
    Request {
        name: "suite::case#1".to_owned(),
        fixtures: Arc::new(fixtures),
        skill: None,
        graded: model::Graded::default(),
        repository: RepositoryDetail::After,
        source_repo: None,
        extra_env: Vec::new(),
        setup_timeout: TIMEOUT,
        remote: model::RemoteMode::Isolated,
        network: Network::None,
        faults: Vec::new(),
        canaries: Vec::new(),
        keep: false,
        only_graded: false,
    }
}

pub(super) async fn a_process_finds_the_files_of_the_fixture_in_clean_directories(kind: &Kind) {
    let bench = Bench::new(kind).await;
    assert_eq!(bench.text("cat kept changed; ls -A \"$HOME\" | wc -l").await, "kept\nold\n0");
    // Files that one process creates must exist for the next one.
    bench.run("echo 1 > \"$HOME/h\"; echo 2 > \"$TMPDIR/t\"; echo 3 > w").await;
    assert_eq!(bench.text("cat \"$HOME/h\" \"$TMPDIR/t\" w").await, "1\n2\n3");
}

pub(super) async fn the_list_of_changes_is_exact(kind: &Kind) {
    let bench = Bench::new(kind).await;
    bench.run("echo new > changed; rm removed; mkdir d; echo x > d/added; touch kept; chmod 644 kept").await;
    let collected = bench.sandbox.collect().await.unwrap();
    let changes: Vec<_> = collected.files_changed.iter().map(|change| (change.path.as_str(), change.change)).collect();
    assert_eq!(changes, [("changed", Change::Modified), ("d/added", Change::Added), ("removed", Change::Deleted)]);
    assert_eq!(fs::read_to_string(bench.sandbox.work().join("d/added")).unwrap(), "x\n");
    assert_eq!(collected.repository.unwrap().status, [" M changed", " D removed", "?? d/"]);
}

pub(super) async fn variables_reach_a_process_unchanged_and_no_others_do(kind: &Kind) {
    let bench = Bench::new(kind).await;
    let strange = "two\nlines, \"quotes\", $HOME and 'more' = \\";
    let extra = [("STRANGE".to_owned(), strange.to_owned()), ("API_KEY".to_owned(), "dummy-key".to_owned())];
    let script = "printf '%s|' \"$STRANGE\" \"$API_KEY\" \"$OF_FIXTURE\" \"$SECRET_TOKEN\" \"$HOME\"";
    let output = bench.run_with(script, &extra, TIMEOUT, 1 << 16).await;
    let home = bench.real(bench.sandbox.home()).display().to_string();
    assert_eq!(output.stdout.text(), format!("{strange}|dummy-key|from the fixture||{home}|"));
}

pub(super) async fn the_exit_code_is_that_of_the_program(kind: &Kind) {
    let bench = Bench::new(kind).await;
    for code in [0, 3, 125, 127, 137] {
        assert_eq!(bench.run(&format!("exit {code}")).await.status.code(), Some(code));
    }
    let missing = bench.sandbox.command(OsStr::new("no-such-program"), &[], &[]);
    let output = run(missing, TIMEOUT, 1 << 16).await.unwrap();
    assert_eq!(output.status.code(), Some(127), "{}", output.stderr.text());
    assert!(!output.stderr.text().is_empty());
    let output = bench.run("echo out; echo err >&2; exit 1").await;
    assert_eq!((output.stdout.text().as_str(), output.stderr.text().as_str()), ("out\n", "err\n"));
}

pub(super) async fn input_reaches_the_program(kind: &Kind) {
    let bench = Bench::new(kind).await;
    let args = ["-c", "cat; echo end"].map(OsStr::new);
    let mut command = bench.sandbox.command(OsStr::new("/bin/sh"), &args, &[]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Contained::spawn(command).unwrap();
    let mut input = process.take_stdin().unwrap();
    input.write_all(b"from outside\n").await.unwrap();
    drop(input);
    let mut text = String::new();
    process.take_stdout().unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!((text.as_str(), process.wait().await.unwrap().code()), ("from outside\nend\n", Some(0)));
}

pub(super) async fn a_program_that_is_asked_to_end_can_say_goodbye(kind: &Kind) {
    let bench = Bench::new(kind).await;
    let script = "trap 'echo goodbye; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let args = ["-c", script].map(OsStr::new);
    let mut command = bench.sandbox.command(OsStr::new("/bin/sh"), &args, &[]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process = Contained::spawn(command).unwrap();
    let mut stdout = process.take_stdout().unwrap();
    let mut ready = [0; 6];
    stdout.read_exact(&mut ready).await.unwrap();
    let status = process.stop(TIMEOUT).await.unwrap();
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.unwrap();
    assert_eq!((text.as_str(), status.code()), ("goodbye\n", Some(7)));
}

pub(super) async fn no_process_is_left_of_a_killed_program(kind: &Kind) {
    let bench = Bench::new(kind).await;
    // All processes hold the pipe open, so it closes only when the last one has ended.
    let pipe = bench.real(&bench.sandbox.work().join("pipe"));
    bench.run("mkfifo pipe").await;
    let (began, beginning) = tokio::sync::oneshot::channel();
    let reading = tokio::task::spawn_blocking(move || {
        let mut lines = BufReader::new(fs::File::open(pipe).unwrap()).lines();
        began.send(lines.next().unwrap().unwrap()).unwrap();
        lines.count()
    });
    let script = "exec 3> pipe; trap '' TERM HUP; (setsid sleep 1000 &) ; sleep 1000 & echo began >&3; sleep 1000";
    let args = ["-c", script].map(OsStr::new);
    let mut command = bench.sandbox.command(OsStr::new("/bin/sh"), &args, &[]);
    command.stdin(Stdio::null());
    let mut process = Contained::spawn(command).unwrap();
    assert_eq!(beginning.await.unwrap(), "began");
    process.kill().await.unwrap();
    assert_eq!(reading.await.unwrap(), 0);
}

pub(super) async fn a_program_is_killed_after_the_timeout(kind: &Kind) {
    let bench = Bench::new(kind).await;
    let output = bench.run_with("sleep 1000", &[], Duration::from_millis(500), 1 << 16).await;
    assert!(output.timed_out);
}

pub(super) async fn long_output_is_shortened_and_does_not_block(kind: &Kind) {
    let bench = Bench::new(kind).await;
    let output = bench.run_with("echo begin; yes 0123456789 | head -n 300000; echo end", &[], TIMEOUT, 4096).await;
    let text = output.stdout.text();
    assert!(text.starts_with("begin\n") && text.ends_with("end\n"), "{text}");
    assert!(text.len() < 5000 && output.stdout.omitted() > 3_000_000, "{}", text.len());
    assert_eq!(output.status.code(), Some(0));
}

pub(super) async fn commands_on_a_copy_change_only_the_copy(kind: &Kind) {
    let bench = Bench::new(kind).await;
    bench.run("echo by the agent > made").await;
    let copy = bench.sandbox.copy().await.unwrap();
    let own = bench.sandbox.fork(&copy).await.unwrap();
    for tree in [own, copy] {
        let script = "cat made; git diff-files; cat $HOME/x $TMPDIR/x 2> /dev/null; echo x > made; rm kept; echo x > $HOME/x; \
                      echo x > $TMPDIR/x; printf '%s' \"$OF_FIXTURE\"";
        tree.prepare().await.unwrap();
        let command = tree.command(tree.shell().as_ref(), &["-c".as_ref(), script.as_ref()]);
        let output = run(command, TIMEOUT, 1 << 16).await.unwrap();
        assert_eq!(output.stdout.text(), "by the agent\nfrom the fixture", "{}", output.stderr.text());
        tree.close().await.unwrap();
    }
    assert_eq!(bench.text("cat made kept").await, "by the agent\nkept");
}

pub(super) async fn what_is_required_holds(kind: &Kind) {
    let bench = Bench::new(kind).await;
    let isolation = bench.factory.isolation();
    let holds = |name: &str| isolation.check("the test", &[name.to_owned()]).is_ok();
    assert_eq!((holds("filesystem"), holds("network")), (bench.kind != "local", bench.kind != "local"));
    // The stand-in for another machine is this machine.
    if bench.elsewhere.is_some() {
        return;
    }
    let read = bench.text(&format!("cat {}; cat /etc/shadow; cat \"$PWD\"/../owner", bench.secret.display())).await;
    let is_seen = read.contains(SECRET) || read.contains("root:") || read.contains("born");
    assert_eq!(is_seen, !holds("filesystem"), "{read}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connects = format!("bash -c ': < /dev/tcp/127.0.0.1/{port}' && echo reached");
    assert_eq!(bench.text(&connects).await.contains("reached"), !holds("network"));
}

pub(super) async fn closing_leaves_nothing_behind(kind: &Kind) {
    let bench = Bench::new(kind).await;
    bench.run("echo x > made").await;
    bench.sandbox.close().await.unwrap();
    bench.sandbox.close().await.unwrap();
    let Bench { root, factory, sandbox, .. } = bench;
    drop((sandbox, factory));
    assert_eq!(fs::read_dir(root.path().join("temp")).unwrap().count(), 0);
}
