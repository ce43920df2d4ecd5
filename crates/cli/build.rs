//! Lists the pages for users below `docs`, which `trialrun docs` searches, passes on to the tests what this machine has, and
//! lets a debug build start faster.

use std::io;
use std::path::{Path, PathBuf};

/// Folders of `docs` with pages for users. The others explain decisions to developers.
const FOLDERS: [&str; 5] = ["", "tutorials", "how-to", "reference", "explanation"];

/// Variable with words that are separated by spaces, as `scripts/needs` prints them.
const VARIABLE: &str = "TRIALRUN_TEST_WITH";

/// Everything that a test may need. `scripts/needs` describes each of them.
const WORDS: [&str; 14] = [
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
    "graders",
    "action",
    "faketime",
    "postgres",
];

#[allow(clippy::print_stdout, reason = "cargo reads it")]
fn main() -> io::Result<()> {
    list_pages()?;
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rustc-check-cfg=cfg(has, values(\"{}\"))", WORDS.join("\", \""));
    // Each word becomes `cfg(has = "WORD")`, without which the tests that need it are ignored. They are not features of
    // the package, because `--all-features` would claim that every machine has everything.
    for word in std::env::var(VARIABLE).unwrap_or_default().split_whitespace() {
        if !WORDS.contains(&word) {
            return Err(io::Error::other(format!("`{word}` in `{VARIABLE}` is not one of: {}", WORDS.join(", "))));
        }
        println!("cargo::rustc-cfg=has=\"{word}\"");
    }
    let variable = |name| std::env::var(name).unwrap_or_default();
    let target = [variable("CARGO_CFG_TARGET_OS"), variable("CARGO_CFG_TARGET_ENV"), variable("PROFILE")];
    if target == ["linux", "gnu", "debug"] {
        // The tests start a debug build thousands of times. At a fixed address it has none of the 400,000 relocations
        // that take more than half of its start. Releases keep their random address.
        println!("cargo::rustc-link-arg-bin=trialrun=-no-pie");
    }
    Ok(())
}

/// Writes the list of pages, for `include!`.
#[allow(clippy::print_stdout, reason = "cargo reads it")]
fn list_pages() -> io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    println!("cargo::rerun-if-changed={}", docs.display());
    let mut list = String::from("&[\n");
    for folder in FOLDERS {
        let mut pages: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(docs.join(folder))? {
            pages.push(entry?.path());
        }
        pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
        pages.sort();
        for page in pages {
            let name = page.strip_prefix(&docs).unwrap_or(&page).with_extension("").display().to_string();
            list.push_str(&format!("({name:?}, include_str!({:?})),\n", page.display().to_string()));
        }
    }
    list.push(']');
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    std::fs::write(out.join("pages.rs"), list)
}
