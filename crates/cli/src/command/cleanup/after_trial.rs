//! Cleanup at the end of a trial, while the run continues.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use model::SideEffects;
use report::counted;
use runner::cleanup::{Cleaned, RemoteCleaner};

use super::remover::{Removal, Remover};
use crate::terminal::Terminal;

/// Removes what a trial created on real remotes, as `cleanup` does. Reports it at the end of the run.
#[derive(Debug, Default)]
pub struct AfterTrial {
    /// Lines about removed items and about remaining ones, with the number of trials.
    lines: Mutex<BTreeMap<String, usize>>,
}

impl AfterTrial {
    /// Prints what was removed and what is left.
    pub fn report(&self, terminal: &Terminal) {
        for (line, count) in &*self.lines.lock().unwrap_or_else(PoisonError::into_inner) {
            terminal.err(&format!("{line} ({})\n", counted(*count, "trial")));
        }
    }
}

impl RemoteCleaner for AfterTrial {
    fn remove(&self, left: &[SideEffects]) -> Cleaned {
        let remover = match Remover::new() {
            Ok(remover) => remover,
            Err(error) => {
                return Cleaned { kept: vec![error.to_string()], left: left.to_vec(), ..Cleaned::default() };
            }
        };
        let mut cleaned = Cleaned::default();
        let mut lines = Vec::new();
        for effects in left {
            let (mut is_whole, remote) = (true, &effects.remote);
            remover.remove(effects, &mut |item, removal| match removal {
                Removal::Removed => {
                    lines.push(format!("note: removed from {remote}: {item}"));
                    cleaned.removed.push(item.to_owned());
                }
                Removal::Gone(_) => {}
                Removal::Left(why) | Removal::Failed(why) => {
                    is_whole = false;
                    lines.push(format!("warning: still on {remote}: {item}: {why}"));
                    cleaned.kept.push(format!("{item}: {why}"));
                }
            });
            if !is_whole {
                cleaned.left.push(effects.clone());
            }
        }
        let mut all = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.into_iter().for_each(|line| *all.entry(line).or_default() += 1);
        cleaned
    }
}
