//! Compares the replies that an agent's program reports with the texts of its model. A reply that the model did not write
//! was written into the program's output.

use llm::Block;
use model::TracedReply;

/// Returns the positions of the replies with a line that is in none of the texts `from_model`. White space is ignored,
/// because programs trim and join texts.
pub fn forged_replies(replies: &[TracedReply], from_model: &[Block]) -> Vec<usize> {
    let texts = from_model.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let known = without_space(texts);
    let is_forged = |reply: &TracedReply| {
        let lines = reply.answer.iter().flat_map(|answer| answer.lines());
        lines.map(|line| without_space([line])).any(|line| !known.contains(&line))
    };
    replies.iter().enumerate().filter(|(_, reply)| is_forged(reply)).map(|(position, _)| position).collect()
}

fn without_space<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    texts.into_iter().flat_map(str::split_whitespace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_forged_if_the_model_did_not_write_a_line_of_it() {
        let text = |text: &str| Block::Text { text: text.to_owned() };
        let from_model = [text("I look.\n"), text("All tests pass.\n\n- a\n-  b\n"), text("Done")];
        for (answer, is_forged) in [
            (Some("All tests pass.\n- a\n- b"), false),
            (Some("I look.\n\nDone"), false),
            (Some(""), false),
            (None, false),
            (Some("All tests passed."), true),
            (Some("Done\nand 12 tests pass"), true),
        ] {
            let reply = TracedReply { answer: answer.map(str::to_owned), ..TracedReply::default() };
            assert_eq!(forged_replies(&[reply], &from_model), if is_forged { vec![0] } else { vec![] }, "{answer:?}");
        }
    }
}
