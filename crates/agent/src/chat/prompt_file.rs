//! Prompts that cases name in `script`.

use std::path::Path;

use model::{Case, Diagnostic};

/// Maximum size of a prompt that is read, in bytes.
const MAX_PROMPT_BYTES: u64 = 16 << 20;

/// Length in UTF-16 units from which a script is the prompt itself and not a file name. The format has always counted
/// in these units.
const INLINE_MIN_UTF16_LEN: usize = 256;

/// Returns the text of every prompt that `case` names, without duplicates. A script that is not a file name is the
/// prompt itself.
pub(super) fn prompts(case: &Case, directory: &Path) -> Result<Vec<String>, Vec<Diagnostic>> {
    let mut scripts: Vec<&str> = Vec::new();
    for script in case.messages.iter().filter_map(|message| message.script.as_deref()) {
        if !scripts.contains(&script) {
            scripts.push(script);
        }
    }
    let mut problems = Vec::new();
    let mut texts = Vec::new();
    for script in scripts {
        if is_inline_prompt(script) {
            texts.push(script.to_owned());
            continue;
        }
        match files::read_named_text(&directory.join(script), MAX_PROMPT_BYTES) {
            Ok(text) => texts.push(text),
            Err(error) => problems.push(
                Diagnostic::error(format!("cannot read the prompt `{script}`: {error}"))
                    .at(case.source.clone())
                    .help("for `chat`, `script` names a file; its path is relative to the suite's folder"),
            ),
        }
    }
    if problems.is_empty() { Ok(texts) } else { Err(problems) }
}

/// Returns `true` if a script is the text itself and not the name of a file.
fn is_inline_prompt(script: &str) -> bool {
    script.contains(['\n', '\r', '{', '}']) || script.encode_utf16().count() >= INLINE_MIN_UTF16_LEN
}
