//! The outline of a run: its verdict and what did not pass, as HTML that is readable without scripts.

use super::index::Index;
use super::text::{marked, text};
use crate::plain;

/// Maximum number of trials.
const TRIALS: usize = 200;
/// Maximum number of characters of a reason.
const REASON: usize = 400;

/// Returns the outline of a finished run.
pub(super) fn outline(index: &Index<'_>) -> String {
    let (word, reason) = index.result();
    let mut html = format!(
        "<h1><span class=\"result {}\">{}</span> {}</h1>\n",
        word.replace(' ', "-"),
        text(word),
        marked(reason)
    );
    for sentence in index.sentences() {
        html.push_str(&format!("<p class=\"verdict\">{}</p>\n", text(sentence)));
    }
    let open: Vec<_> = index.open_trials().collect();
    if open.is_empty() {
        return html;
    }
    html.push_str("<section aria-label=\"Not passed\"><h2>Not passed</h2>\n<div class=\"failures\">\n");
    for row in open.iter().take(TRIALS) {
        let reason = marked(&plain::folded(&row.reason, REASON, "…"));
        let (name, outcome) = (text(&row.id), row.outcome.name());
        html.push_str(&format!(
            "<div class=\"failure {outcome}\"><p><b>{name}</b> {outcome}</p><p class=\"reason\">{reason}</p></div>\n"
        ));
    }
    html.push_str("</div>\n");
    if let Some(more) = open.len().checked_sub(TRIALS).filter(|more| *more > 0) {
        html.push_str(&format!("<p class=\"muted\">and {more} more</p>\n"));
    }
    html + "</section>\n"
}
