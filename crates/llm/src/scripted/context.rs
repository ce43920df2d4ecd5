//! Context in which a script is played.

use serde_json::Value;

/// Properties of the trial that a script needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptContext {
    /// Working directory of the trial, for `$SANDBOX`.
    pub sandbox: String,
    /// Home directory of the agent, for `$HOME`.
    pub home: String,
    /// True if the agent has no tools, so that its main conversation has none either.
    pub without_tools: bool,
}

impl ScriptContext {
    /// Replaces the placeholders in `text`.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(offset) = rest.find('$') {
            filled.push_str(&rest[..offset]);
            rest = &rest[offset..];
            let known = [("$SANDBOX", &self.sandbox), ("$HOME", &self.home)];
            let found = known.into_iter().find_map(|(name, value)| {
                let after = rest.strip_prefix(name)?;
                let goes_on = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
                (!goes_on).then_some((value, after))
            });
            match found {
                Some((value, after)) => {
                    filled.push_str(value);
                    rest = after;
                }
                None => {
                    filled.push('$');
                    rest = &rest[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    /// Replaces the placeholders in the strings of `value`; keys stay unchanged.
    pub(super) fn fill_json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.fill_json(item)).collect()),
            Value::Object(entries) => {
                Value::Object(entries.iter().map(|(key, value)| (key.clone(), self.fill_json(value))).collect())
            }
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_replaced_as_whole_words_only() {
        let context = ScriptContext { sandbox: "/box".into(), home: "/home/$SANDBOX".into(), without_tools: false };
        assert_eq!(context.fill("cd $SANDBOX/a; ls $HOME."), "cd /box/a; ls /home/$SANDBOX.");
        assert_eq!(context.fill("$SANDBOXES $HOME_X ${HOME} $5 é$"), "$SANDBOXES $HOME_X ${HOME} $5 é$");
        let input = json!({"$HOME": ["$HOME", 1, {"path": "$SANDBOX/x"}]});
        let filled = json!({"$HOME": ["/home/$SANDBOX", 1, {"path": "/box/x"}]});
        assert_eq!(context.fill_json(&input), filled);
    }
}
