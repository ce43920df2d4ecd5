//! `vally`: suites and experiments of Vally, read in place. Each stimulus is a case. docs/coming-from-vally.md describes
//! what is honoured and what differs.

mod environment;
mod experiment;
mod grader;
mod judged;
mod settings;
mod stimulus;
mod suite;

use std::sync::Arc;

use model::Case;
use model::decode::Problems;

use super::foreign::{Reading, contained, misspelt_list};
use super::{Format, SuiteFile, is_of_other_tool};
use crate::library::Library;

/// The `vally` format.
pub const VALLY: Format = Format {
    name: NAME,
    tool: Some("Vally"),
    mark: "a suite of Vally: a map with `stimuli`, the list of its cases; or an experiment, with `evals` and `variants`",
    fails_alone: true,
    is_meant: |text| text.lines().any(|line| line.starts_with("stimuli:")),
    resembles: is_suite,
    // Without the name of such a file, another list may have a similar key.
    recognises: |file| is_suite(file) || is_experiment(file) || misspelt_list(file.root, STIMULI),
    read,
};

/// Key of the cases.
const STIMULI: &str = "stimuli";

/// Name of the format.
const NAME: &str = "vally";

fn is_suite(file: &SuiteFile<'_>) -> bool {
    file.root.get(STIMULI).is_some() || (is_of_other_tool(file.path) && misspelt_list(file.root, STIMULI))
}

/// Returns `true` for an experiment. It names suites that are also found on their own, so it is read only if it is named.
fn is_experiment(file: &SuiteFile<'_>) -> bool {
    let has = |key: &str| file.root.get(key).is_some();
    let has_variants = has("variants") || has("matrix");
    // One of the keys may be misspelt.
    (has("evals") && has_variants) || (has("baseline") && has("vary") && (has("evals") || has_variants))
}

fn read(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    let mut reading = Reading::new(file.path, library);
    let cases =
        if is_suite(file) || !is_experiment(file) { reading.suite(file.root) } else { reading.experiment(file.root) };
    let found = std::mem::take(&mut reading.found);
    library.cover(reading.coverage(&file.root.source.path, NAME));
    contained(cases, found, problems)
}
