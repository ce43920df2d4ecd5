//! Mocked MCP servers and mocked programs. An [`Engine`] decides which answer a call gets, and keeps a record of the
//! calls. [`protocol`] reads and writes the messages of the Model Context Protocol. Nothing here does I/O: the caller
//! connects the agent, reads files, waits, and asks the models that play servers.
//!
//! ```
//! use std::sync::Arc;
//!
//! use model::{MockVerdict, MockedAnswer, MockedReply, MockedServer, MockedTool};
//! use model::{Excerpt, McpServer, Mocks, ServerSource};
//! use serde_json::json;
//! use trialrun_mock::{Engine, Outcome, Subject};
//!
//! let reply = MockedReply::Text { text: "Issue {{input.id}} is open.".into(), is_error: false };
//! let answer = MockedAnswer { when: Vec::new(), times: None, delay_ms: 0, reply, directory: Arc::default() };
//! let tool = MockedTool { name: "get_issue".into(), answers: vec![answer], ..MockedTool::default() };
//! let server = ServerSource::Mock(MockedServer { instructions: None, tools: vec![tool] });
//! let place = Excerpt::of_file("case.yaml");
//! let server = McpServer { name: "issues".into(), source: server, is_of_plugin: false, place };
//! let engine = Engine::new(Arc::new(Mocks { servers: vec![server], commands: Vec::new() }));
//!
//! let no_files = |_: &std::path::Path| Err("there are no files".to_owned());
//! let Outcome::Answer(answer) = engine.call(&Subject::Tool("issues", "get_issue"), json!({"id": 7}), &no_files) else {
//!     panic!("no model plays it");
//! };
//! assert_eq!((answer.call.output.as_str(), answer.call.verdict), ("Issue 7 is open.", MockVerdict::Answered));
//! ```

mod engine;
mod guard;
mod mistake;
mod played;
pub mod protocol;
mod text;

pub use engine::{Answer, Engine, Outcome, Subject};
pub use guard::check as check_guard;
pub use mistake::{Mistake, Scope, named_files};
pub use played::Scene;
