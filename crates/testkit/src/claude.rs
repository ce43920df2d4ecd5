//! A program that stands where `claude` would.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::Project;

/// Speaks the protocol up to the user's first message. What it can say then: `text TEXT`, `result TEXT`, and `hear`,
/// which waits for the next message, or for being interrupted.
const OPENING: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.330 (Claude Code)"; exit 0; fi
hear() {
  while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"request_id":"\([^"]*\)".*/\1/p')
    if [ -n "$id" ]; then
      printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id"
    fi
    case $line in *'"type":"user"'*|*'"subtype":"interrupt"'*) return ;; esac
  done
  exit 0
}
said=0
text() {
  said=$((said + 1))
  printf '{"type":"assistant","session_id":"s-1","message":{"id":"m-%s","model":"m","content":[{"type":"text","text":"%s"}]}}\n' "$said" "$1"
}
result() {
  printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","result":"%s","usage":{"input_tokens":10,"output_tokens":2}}\n' "$1"
}
hear
printf '{"type":"system","subtype":"init","session_id":"s-1","model":"m","tools":["Bash"],"claude_code_version":"2.1.330"}\n'
"#;

impl Project {
    /// Puts a program in front of the `PATH` that stands where `claude` would. Once the user has spoken to it, it does
    /// what `acts` say, in shell; besides the shell's own words there are `text TEXT`, `result TEXT` and `hear`.
    pub fn claude(self, acts: &str) -> Self {
        self.claude_program(&format!("{OPENING}{acts}\n"))
    }

    /// As [`claude`](Self::claude), but `program` is all of it.
    pub fn claude_program(self, program: &str) -> Self {
        self.write("bin/claude", program);
        let bin = self.dir().join("bin");
        fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).expect("a program");
        self.path_first(&bin).env("ANTHROPIC_API_KEY", "sk-test")
    }
}
