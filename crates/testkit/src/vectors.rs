//! Comparison with recorded vectors of other programs.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::Value;

/// Name, recorded value and current value.
pub type Vector = (String, Value, Value);

/// Requires that each vector agrees, or is listed in `differences`, a JSON object with reasons by name.
#[track_caller]
pub fn compare(what: &str, differences: &str, vectors: &[Vector]) {
    let listed: BTreeMap<String, String> = serde_json::from_str(differences).expect("reasons by name");
    let (mut agree, mut differ, mut wrong) = (0, 0, Vec::new());
    for (name, recorded, now) in vectors {
        match (recorded == now, listed.get(name)) {
            (true, None) => agree += 1,
            (false, Some(_)) => differ += 1,
            (true, Some(_)) => wrong.push(format!("{name}: listed, but both say {now}")),
            (false, None) => wrong.push(format!("{name}: recorded {recorded}, now {now}")),
        }
    }
    let is_vector = |name: &String| vectors.iter().any(|(other, ..)| other == name);
    let missing = listed.keys().filter(|name| !is_vector(name));
    wrong.extend(missing.map(|name| format!("{name}: listed, but there is no such vector")));
    let is_cited = |reason: &String| ["defect: ", "decision: "].iter().any(|mark| reason.starts_with(mark));
    let without = listed.iter().filter(|(_, reason)| !is_cited(reason));
    wrong.extend(without.map(|(name, _)| format!("{name}: has no reason")));
    // Written directly to stdout, because the output of passing tests is captured and the count is for whoever reads
    // the run.
    let counted = format!("{what}: {agree} agree + {differ} listed = {} of {}", agree + differ, vectors.len());
    let _ = std::io::stdout().write_all(format!("\n{counted}\n").as_bytes());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(agree + differ, vectors.len(), "each vector counts once");
}
