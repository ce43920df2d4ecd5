//! An agent that keeps notes.

mod tools;

use rig::completion::Prompt;
use rig::providers::anthropic::Client;

const PREAMBLE: &str = "You keep the notes of one person. \
    Quote notes exactly.\n\
    Never invent a note.";

const POLICY: &str = r#"
Answer from the notes only.
Notes with the tag "private" must not be shown to guests.
"#;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::from_env();
    let agent = client
        .agent("claude-haiku-4-5")
        .preamble(PREAMBLE)
        .append_preamble(POLICY)
        .build();
    println!("{}", agent.prompt("Which notes are pinned?").await?);
    println!("{}", tools::definitions());
    Ok(())
}
