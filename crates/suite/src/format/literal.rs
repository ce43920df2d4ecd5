//! Texts that are taken as they are written, although another program would read more into them.

use model::decode::{Fields, Problems};
use model::{Diagnostic, Node};

/// Reads `tags`, and warns about one with a comma, which is probably several.
pub fn tags(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let tags = fields.texts("tags", problems).unwrap_or_default();
    for item in fields.list("tags", &mut Problems::new()).unwrap_or_default() {
        if let Some(tag) = item.as_str().filter(|tag| tag.contains(',')) {
            let problem = item.warning(format!("`{tag}` is one tag, with a comma in it"));
            problems.push(problem.help(format!("write each tag as an item of its own, such as `[{tag}]`")));
        }
    }
    tags
}

/// Returns a warning about a message that is only the address of a file.
pub fn file_as_message(message: &Node) -> Option<Diagnostic> {
    let written = message.as_str().map(str::trim)?;
    let is_file = written.starts_with("file://") && !written.contains(char::is_whitespace);
    let problem = message.warning(format!("`{written}` is the whole message here, and no file is read"));
    is_file.then(|| problem.help("write the text of the message"))
}
