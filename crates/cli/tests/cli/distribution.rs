//! How trialrun reaches its users: the npm packages, the Homebrew formula, and the checks of scripts and workflows.
//! The archives in these tests contain a script that starts the real program, because packing the program takes
//! seconds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::{Live, Project, Ran};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");
const TARGETS: [&str; 4] =
    ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-apple-darwin", "aarch64-apple-darwin"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[track_caller]
fn script(name: &str, arguments: &[&str]) -> Ran {
    Command::new(root().join("scripts").join(name)).args(arguments).output().unwrap().into()
}

/// Writes a script that starts the program, in place of the program.
fn stand_in(project: &Project) -> String {
    let path = project.tmp().join("program");
    fs::write(&path, format!("#!/bin/sh\nexec {PROGRAM} \"$@\"\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
#[cfg_attr(not(has = "node"), ignore = "needs Node.js and npm; run scripts/test")]
fn the_npm_package_starts_the_program_of_its_platform() {
    let project = Project::new("npm").env("npm_config_update_notifier", "false");
    let place = |name: &str| project.tmp().join(name).to_str().unwrap().to_owned();
    for target in TARGETS {
        script("release-archive", &[target, &stand_in(&project), &place("archives")]).exits(0);
    }
    script("npm-packages", &[&place("archives"), &place("packages")]).exits(0);

    let npm = |arguments: &[&str]| project.run(arguments).exits(0);
    let cpu = if cfg!(target_arch = "x86_64") { "x64" } else { "arm64" };
    let own = format!("linux-{cpu}");
    let pack = |folder: &str| {
        let from = place(&format!("packages/{folder}"));
        let packed = npm(&["pack", "--json", &from, "--pack-destination", &place("")]).json();
        let files = packed[0]["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned());
        (place(packed[0]["filename"].as_str().unwrap()), files.collect::<Vec<_>>())
    };
    let (platform, files) = pack(&own);
    assert_eq!(
        files,
        ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "bin/trialrun", "package.json", "third-party-notices.txt"]
    );
    let (wrapper, files) = pack("trialrun");
    let types_and_modules = ["client.js", "index.d.ts", "index.js", "jest.d.ts", "jest.js", "matchers.js"];
    let others = ["package.json", "program.js", "rpc.d.ts", "traces.js"];
    let vitest = ["vitest-reporter.d.mts", "vitest-reporter.mjs", "vitest.d.mts", "vitest.mjs"];
    let first = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "bin/trialrun.js"];
    assert_eq!(files, [&first[..], &types_and_modules, &others, &vitest].concat());
    let description = fs::read_to_string(project.tmp().join("packages/trialrun/package.json")).unwrap();
    let description: Value = serde_json::from_str(&description).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let all =
        ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"].map(|name| (format!("@trialrun/{name}"), version));
    assert_eq!(
        description["optionalDependencies"],
        json!(all.into_iter().collect::<std::collections::BTreeMap<_, _>>())
    );

    let install = ["install", "--offline", "--no-audit", "--no-fund", "--no-package-lock"];
    project.write("package.json", "{ \"private\": true }");
    npm(&[&install[..], &[&wrapper, &platform]].concat());
    let spoken = npm(&["exec", "--offline", "trialrun", "--", "--version"]);
    assert_eq!(spoken.out, format!("trialrun {version}\n"), "{}", spoken.output());

    // Arguments, streams and exit codes are passed through.
    let launcher = project.dir().join("node_modules/.bin/trialrun");
    let start = |arguments: &[&str], env: &[(&str, &str)]| {
        let mut command = Command::new(&launcher);
        let own = project.command(&[]);
        let inherited = own.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.args(arguments).current_dir(project.dir()).env_clear().envs(inherited).stdin(Stdio::null());
        command.envs(env.iter().copied());
        command
    };
    let run = |arguments: &[&str], env: &[(&str, &str)]| Ran::from(start(arguments, env).output().unwrap());
    let scenario =
        |prompt: &str| format!("scenario: s\nsystem_prompt: Say hello.\nagent: fake\nuser_prompt: '{prompt}'\n");
    let assertion = "assertions: [{ id: says, type: output_contains, pattern: hello }]\n";
    project.write("pass.yaml", &format!("{}{assertion}", scenario("hello")));
    project.write("fail.yaml", &format!("{}{assertion}", scenario("bye")));
    project.write("long.yaml", &format!("{}{assertion}", scenario("!sleep 1h")));
    assert!(run(&["run", "pass.yaml"], &[]).exits(0).out.contains("PASS"));
    run(&["run", "fail.yaml"], &[]).exits(1);
    let wrong = run(&["run", "no where.yaml"], &[]).exits(2);
    assert!(wrong.err.contains("`no where.yaml`"), "{}", wrong.output());

    // A signal reaches the program once. The program stops gracefully and leaves nothing behind.
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut live = Live::start(start(&["run", "long.yaml", "--report", "jsonl"], &[]));
        drop(live.line_with("\"waiting\""));
        live.signal(signal);
        let ran = live.end().exits(code);
        assert!(ran.out.contains("\"run_finished\""), "{}", ran.output());
    }
    // If a signal kills the program, the launcher ends by the same signal.
    let killed = project.tmp().join("killed");
    fs::write(&killed, "#!/bin/sh\nkill -KILL $$\n").unwrap();
    fs::set_permissions(&killed, fs::Permissions::from_mode(0o755)).unwrap();
    run(&[], &[("TRIALRUN_PROGRAM", killed.to_str().unwrap())]).exits(-1);
    let absent = run(&[], &[("TRIALRUN_PROGRAM", "/no/such/program")]).exits(3);
    assert!(absent.err.starts_with("trialrun: could not start the program: "), "{}", absent.output());

    // If the package for this platform is missing, the launcher says so.
    fs::remove_dir_all(project.dir().join("node_modules/@trialrun")).unwrap();
    let missing = run(&["--version"], &[]).exits(3);
    let wanted = format!("trialrun: the package @trialrun/{own} is not installed.");
    assert!(missing.err.starts_with(&wanted), "{}", missing.output());
}

/// Returns a line with a checksum for each archive.
fn checksums() -> Vec<String> {
    TARGETS
        .iter()
        .zip('a'..)
        .map(|(target, letter)| format!("{}  trialrun-{target}.tar.gz\n", letter.to_string().repeat(64)))
        .collect()
}

/// Writes the formula for archives with these checksums.
#[track_caller]
fn formula(checksums: &[String]) -> Ran {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), checksums.concat()).unwrap();
    script("homebrew-formula", &["1.2.3", "https://example.org/ada/trialrun", file.path().to_str().unwrap()])
}

#[test]
fn the_homebrew_formula_has_the_checksum_of_each_archive() {
    let checksums = checksums();
    let text = formula(&checksums).exits(0).out;
    for (target, letter) in TARGETS.iter().zip('a'..) {
        let url = format!("url \"https://example.org/ada/trialrun/releases/download/v1.2.3/trialrun-{target}.tar.gz\"");
        let sum = format!("{url}\n      sha256 \"{}\"\n", letter.to_string().repeat(64));
        assert!(text.contains(&sum), "{target}: {text}");
    }
    assert!(!text.contains("REPOSITORY") && !text.contains("VERSION") && !text.contains("CHECKSUM"), "{text}");

    let ran = formula(&checksums[..3]).exits(1);
    assert!(ran.err.contains("has no checksum of trialrun-"), "{}", ran.output());
}

#[test]
#[cfg_attr(not(has = "ruby"), ignore = "needs Ruby; run scripts/test")]
fn the_homebrew_formula_is_valid_ruby() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), formula(&checksums()).exits(0).out).unwrap();
    let checked = Command::new("ruby").arg("-c").arg(file.path()).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

/// Checks the workflows without a linter; `scripts/lint` runs one.
#[test]
fn workflows_pin_actions_and_ask_for_few_permissions() {
    let mut files = vec![root().join("action.yml")];
    files.extend(fs::read_dir(root().join(".github/workflows")).unwrap().map(|file| file.unwrap().path()));
    let pinned = regex::Regex::new(r"^\s*(- )?uses: (\./|[a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$").unwrap();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for line in text.lines().filter(|line| line.contains("uses: ")) {
            assert!(pinned.is_match(line), "{}: {line}", file.display());
        }
        if !file.ends_with("action.yml") {
            assert!(text.contains("\npermissions:"), "{}", file.display());
            assert_eq!(text.matches("actions/checkout@").count(), text.matches("persist-credentials: false").count());
        }
    }
    let release = fs::read_to_string(root().join(".github/workflows/release.yml")).unwrap();
    for target in TARGETS.into_iter().chain(["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]) {
        assert!(release.contains(&format!("target: {target},")), "{target}");
    }
}

#[test]
fn the_readme_stays_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 170, "{lines} lines");
}
