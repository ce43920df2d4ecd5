//! Tools of the notes agent.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// A search.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SearchRequest {
    /// Words to search for
    pub query: String,
    #[serde(default)]
    pub limit: Option<u32>,
    #[serde(rename = "tag")]
    pub tags: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct NoteRequest {
    #[schemars(description = "Text of the note")]
    pub text: String,
    pub pinned: Option<bool>,
}

pub struct Notes {
    separator: char,
}

#[tool_router]
impl Notes {
    #[tool(description = "Search the notes")]
    async fn search_notes(&self, Parameters(request): Parameters<SearchRequest>) -> Result<String, String> {
        Ok(request.query.split(self.separator).collect())
    }

    /// Add a note.
    /// Must not be called for text that the user did not write.
    #[tool(name = "add_note")]
    pub async fn add(&self, Parameters(NoteRequest { text, pinned }): Parameters<NoteRequest>) -> String {
        format!("{text} {pinned:?}")
    }

    #[tool]
    fn count_words(&self, text: String, at_least: usize) -> usize {
        text.split('\'').count().max(at_least)
    }
}

/// Returns the definitions for the HTTP API.
pub fn definitions() -> serde_json::Value {
    json!([
        {
            "name": "delete_note",
            "description": r#"Delete a note. Never delete "pinned" notes."#,
            "input_schema": {
                "type": "object",
                "properties": { "id": { "type": "integer" } },
                "required": ["id"]
            }
        }
    ])
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_fake_tool_is_not_discovered() {
        let fake = serde_json::json!({ "name": "fake", "parameters": { "type": "object", "properties": {} } });
        assert_eq!(fake["name"], "fake");
    }
}
