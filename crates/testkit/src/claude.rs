//! A stub program in place of `claude`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::Project;

/// Implements the protocol up to the user's first message. The script may then use `text TEXT`, `result TEXT`, `hear`,
/// which waits for the next message, or for an interrupt, and `ask PROGRAM`, which requests a message from the scripted
/// model and prints the response.
const OPENING: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.332 (Claude Code)"; exit 0; fi
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
ask() {
  body='{"model":"m","max_tokens":9,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"go"}]}'
  bash -c 'port=${2##*:}; exec 3<>"/dev/tcp/127.0.0.1/$port"; head="POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n"
    head="${head}user-agent: $1\r\nx-api-key: $3\r\nconnection: close\r\ncontent-length: ${#4}\r\n\r\n"
    printf "$head%s" "$4" >&3; cat <&3' - "$1" "$ANTHROPIC_BASE_URL" "$ANTHROPIC_API_KEY" "$body"
}
hear
printf '{"type":"system","subtype":"init","session_id":"s-1","model":"m","tools":["Bash"],"claude_code_version":"2.1.332"}\n'
"#;

impl Project {
    /// Puts a program in place of `claude` first on the `PATH`. After the user's first message it runs `acts`, a shell
    /// script that may also use `text TEXT`, `result TEXT`, `hear` and `ask PROGRAM`.
    pub fn claude(self, acts: &str) -> Self {
        self.claude_program(&format!("{OPENING}{acts}\n"))
    }

    /// Like [`claude`](Self::claude), but `program` is the whole script.
    pub fn claude_program(self, program: &str) -> Self {
        self.write("bin/claude", program);
        let bin = self.dir().join("bin");
        fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).expect("a program");
        self.path_first(&bin).env("ANTHROPIC_API_KEY", "sk-test")
    }
}
