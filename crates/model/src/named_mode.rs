//! Parses and prints modes that users write by name.

use crate::{InvalidText, nearest};

/// Returns the mode called `written`, or an error that lists the valid names. `what` names the kind of mode.
pub(crate) fn parse<T: Copy>(written: &str, modes: &[(&'static str, T)], what: &str) -> Result<T, InvalidText> {
    if let Some((_, mode)) = modes.iter().find(|(name, _)| *name == written) {
        return Ok(*mode);
    }
    let names = || modes.iter().map(|(name, _)| *name);
    let near = nearest(written, names()).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default();
    let mut known: Vec<String> = names().map(|name| format!("`{name}`")).collect();
    let last = known.pop().unwrap_or_default();
    let reason = format!("`{written}` is not {what}{near}; write {} or {last}", known.join(", "));
    Err(InvalidText::new(written, reason))
}

/// Returns the name of a mode.
pub(crate) fn name_of<T: PartialEq>(mode: &T, modes: &[(&'static str, T)]) -> &'static str {
    modes.iter().find(|(_, known)| known == mode).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_an_error_with_a_suggestion_and_all_names() {
        let modes = [("off", 0), ("record", 1), ("replay", 2)];
        assert_eq!((parse("replay", &modes, "a mode"), name_of(&1, &modes)), (Ok(2), "record"));
        let error = parse("replays", &modes, "a cassette mode").unwrap_err();
        let expected = "`replays` is not a cassette mode (did you mean `replay`?); write `off`, `record` or `replay`";
        assert_eq!((error.text(), error.to_string().as_str()), ("replays", expected));
    }
}
