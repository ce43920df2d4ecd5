//! Making the tree in which the commands of assertions work.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Excerpt, FixtureFile, Fixtures};
use sandbox::supervise::{Network, Supervisor};
use sandbox::{Host, RepositoryDetail, Request, SandboxFactory};

use super::{PROGRAM, Promise, millis};

/// Returns a promise for a small repository and one for a large one, in which the agent changed a file.
pub(super) fn promises(scratch: &Path) -> [Promise; 2] {
    [
        Promise { what: "grading tree of 50 files", limit: 5.0, unit: "ms", measured: measured(scratch, 50, 30) },
        Promise {
            what: "grading tree of 50,000 files",
            limit: 1000.0,
            unit: "ms",
            measured: measured(scratch, 50_000, 3),
        },
    ]
}

fn measured(scratch: &Path, files: usize, times: usize) -> Vec<f64> {
    let source = Excerpt { file: "a.yaml".into(), line: 1, column: 1, length: 1, text: "x".into(), skipped: 0 };
    let file = |at: usize| FixtureFile {
        path: format!("src/{}/{at}.txt", at / 100),
        content: format!("content of file {at}\n").repeat(20).into_bytes().into(),
        executable: false,
        source: source.clone(),
    };
    let fixtures = Fixtures { git_init: true, files_committed: (0..files).map(file).collect(), ..Fixtures::default() };
    let request = Request {
        name: "case#1".to_owned(),
        fixtures: Arc::new(fixtures),
        skill: None,
        graded: model::Graded::default(),
        repository: RepositoryDetail::After,
        source_repo: None,
        remote: model::RemoteMode::Isolated,
        extra_env: Vec::new(),
        setup_timeout: Duration::from_secs(600),
        network: Network::Open,
        faults: Vec::new(),
        canaries: Vec::new(),
        keep: false,
        only_graded: false,
    };
    let path = std::env::var("PATH").unwrap_or_default();
    let host = Host {
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        home: None,
        temp: scratch.to_owned(),
        supervisor: Supervisor::new(PROGRAM).expect("a supervisor"),
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        // The fixture is needed as long as the sandbox.
        let factory = SandboxFactory::open("local", &host).expect("a factory");
        let sandbox = factory.make(request).await.expect("a sandbox");
        std::fs::write(sandbox.work().join("src/0/1.txt"), "changed").expect("a file");
        let mut measured = Vec::new();
        for _ in 0..=times {
            let began = Instant::now();
            let copy = sandbox.copy().await.expect("a grading tree");
            measured.push(millis(began.elapsed()));
            copy.close().await.expect("a closed tree");
        }
        measured.split_off(1)
    })
}
