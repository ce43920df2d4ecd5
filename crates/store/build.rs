//! Passes on to the tests whether this machine has PostgreSQL. `crates/cli/build.rs` describes how.

#[allow(clippy::print_stdout, reason = "cargo reads it")]
fn main() {
    const VARIABLE: &str = "TRIALRUN_TEST_WITH";
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rustc-check-cfg=cfg(has, values(\"postgres\"))");
    if std::env::var(VARIABLE).unwrap_or_default().split_whitespace().any(|word| word == "postgres") {
        println!("cargo::rustc-cfg=has=\"postgres\"");
    }
}
