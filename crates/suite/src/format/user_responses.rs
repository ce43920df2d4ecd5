//! Prepared answers to the questions of agents.

use model::decode::{Fields, Problems};
use model::{Spanned, UserResponse};

/// Keys of other programs for a prepared answer to a question.
const SYNONYMS: [(&str, &str); 5] = [
    ("answer", "choose"),
    ("reply", "choose"),
    ("response", "choose"),
    ("match", "match_question"),
    ("question", "match_question"),
];

/// Reads `user_responses`.
pub fn user_responses(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<UserResponse> {
    let items = fields.list("user_responses", problems).unwrap_or_default();
    let mut responses = Vec::with_capacity(items.len());
    for item in items {
        let Some(entry) = Fields::of(item, "an item of `user_responses`", problems) else { continue };
        let mut entry = entry.with_synonyms(&SYNONYMS);
        let pattern = entry.required_text("match_question", problems);
        let place = entry.get("match_question");
        let choose = entry.required_text("choose", problems);
        entry.finish(problems);
        if let (Some(pattern), Some(place), Some(choose)) = (pattern, place, choose) {
            responses.push(UserResponse {
                match_question: Spanned::new(pattern, place.span),
                choose,
                source: place.excerpt(),
            });
        }
    }
    responses
}
