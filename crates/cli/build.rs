//! Passes on to the tests what this machine has. `TRIALRUN_TEST_WITH` contains words that are separated by spaces, as
//! `scripts/needs` prints them. Each of them becomes `cfg(has = "WORD")`, without which the tests that need it are
//! ignored: `#[cfg_attr(not(has = "WORD"), ignore = "REASON")]`. They are not features of the package, because those
//! belong to its users, and `--all-features` would claim that every machine has everything. The variable belongs to the
//! fingerprint of the package: another value compiles the program and its tests again.

const VARIABLE: &str = "TRIALRUN_TEST_WITH";

/// Everything that a test may need. `scripts/needs` describes each of them.
const WORDS: [&str; 12] = [
    "agents",
    "browser",
    "packages",
    "python-packages",
    "isolation",
    "root",
    "docker",
    "podman",
    "node",
    "ruby",
    "action",
    "faketime",
];

#[allow(clippy::print_stdout, reason = "cargo reads it")]
fn main() -> Result<(), String> {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rustc-check-cfg=cfg(has, values(\"{}\"))", WORDS.join("\", \""));
    for word in std::env::var(VARIABLE).unwrap_or_default().split_whitespace() {
        if !WORDS.contains(&word) {
            return Err(format!("`{word}` in `{VARIABLE}` is not one of: {}", WORDS.join(", ")));
        }
        println!("cargo::rustc-cfg=has=\"{word}\"");
    }
    Ok(())
}
