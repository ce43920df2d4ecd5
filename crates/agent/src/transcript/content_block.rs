//! A block of a message's content, or an item of a conversation, in the form of any common API.

use serde_json::{Map, Value, json};

use super::{ReportedCall, as_text, content, given};

/// Meaning of a block.
#[derive(Debug)]
pub(crate) enum ContentBlock<'a> {
    /// Text for the user.
    Text(&'a str),
    /// A call of a tool.
    Call(ReportedCall),
    /// A call without a name.
    NamelessCall,
    /// The result of an earlier call.
    Result(BlockResult<'a>),
    /// Reasoning, an image, or something else that neither is text nor belongs to a call.
    Other,
    /// A block of an unknown type, which may belong to a call.
    Unknown(&'a str),
}

/// Result of an earlier call.
#[derive(Debug)]
pub(crate) struct BlockResult<'a> {
    /// Id of the call.
    pub(crate) id: Option<&'a str>,
    /// Name of the tool.
    pub(crate) name: Option<&'a str>,
    pub(crate) content: String,
    pub(crate) is_error: bool,
}

/// Types of blocks that neither are text nor belong to a call.
const OTHERS: &[&str] = &[
    "audio",
    "compaction",
    "compaction_summary",
    "container_upload",
    "document",
    "file",
    "image",
    "image_url",
    "input_audio",
    "input_file",
    "input_image",
    "item_reference",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_list_tools",
    "reasoning",
    "redacted_thinking",
    "search_result",
    "source",
    "source-document",
    "source-url",
    "step-start",
    "thinking",
    "video",
];

/// Keys of blocks without a type that neither are text nor belong to a call.
const OTHER_KEYS: &[&str] = &[
    "cachePoint",
    "codeExecutionResult",
    "document",
    "fileData",
    "guardContent",
    "image",
    "inlineData",
    "reasoningContent",
    "video",
];

impl<'a> ContentBlock<'a> {
    /// Reads `block`.
    pub(crate) fn read(block: &'a Map<String, Value>) -> Self {
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        let Some(kind) = text("type") else { return Self::without_type(block) };
        match kind {
            "text" | "output_text" | "input_text" => Self::Text(text("text").unwrap_or_default()),
            "refusal" => Self::Text(text("refusal").unwrap_or_default()),
            _ if OTHERS.contains(&kind) => Self::Other,
            "dynamic-tool" | "function" | "tool-call" | "toolCall" => Self::call(block, None),
            "tool-result" => Self::Result(BlockResult::read(block)),
            _ if kind.ends_with("tool_use") => Self::call(block, None),
            _ if kind.ends_with("tool_result") || kind.ends_with("_output") || kind.ends_with("_response") => {
                Self::Result(BlockResult::read(block))
            }
            // Calls that the provider makes itself have no name: `web_search_call`.
            _ if kind.ends_with("_call") => Self::call(block, kind.strip_suffix("_call")),
            _ => match kind.strip_prefix("tool-") {
                Some(tool) => Self::call(block, Some(tool)),
                None => Self::Unknown(kind),
            },
        }
    }

    /// Reads a block whose only key says what it is.
    fn without_type(block: &'a Map<String, Value>) -> Self {
        let under = |keys: [&str; 2]| keys.iter().find_map(|key| block.get(*key)?.as_object());
        if let Some(called) = under(["functionCall", "toolUse"]).or_else(|| under(["function_call", "tool_use"])) {
            return Self::call(called, None);
        }
        if let Some(result) =
            under(["functionResponse", "toolResult"]).or_else(|| under(["function_response", "tool_result"]))
        {
            return Self::Result(BlockResult::read(result));
        }
        if let Some(code) = block.get("executableCode") {
            return Self::Call(ReportedCall { input: Some(code.clone()), ..ReportedCall::new(None, "code_execution") });
        }
        match block.get("text") {
            // Gemini marks its reasoning this way.
            Some(_) if block.get("thought") == Some(&Value::Bool(true)) => Self::Other,
            Some(Value::String(text)) => Self::Text(text),
            _ if block.keys().any(|key| OTHER_KEYS.contains(&key.as_str())) => Self::Other,
            _ => Self::Unknown(block.keys().next().map_or("", String::as_str)),
        }
    }

    fn call(block: &Map<String, Value>, name: Option<&str>) -> Self {
        if let Some(mut call) = ReportedCall::read(block) {
            // These APIs leave out arguments that are empty.
            call.input.take_if(|input| input.is_null());
            return Self::Call(call);
        }
        let Some(name) = name.filter(|name| !["custom_tool", "function", "mcp", "tool"].contains(name)) else {
            return Self::NamelessCall;
        };
        let mut named = block.clone();
        named.insert("name".to_owned(), json!(name));
        if let Some(action) = block.get("action") {
            named.insert("input".to_owned(), action.clone());
        }
        ReportedCall::read(&named).map_or(Self::NamelessCall, Self::Call)
    }
}

impl<'a> BlockResult<'a> {
    fn read(block: &'a Map<String, Value>) -> Self {
        let text = |keys: &[&str]| keys.iter().find_map(|key| block.get(*key)?.as_str());
        let found = ["content", "output", "result", "response"].iter().find_map(|key| given(block, key));
        let is_true = |key: &str| block.get(key).and_then(Value::as_bool).unwrap_or(false);
        Self {
            id: text(&["tool_use_id", "call_id", "toolCallId", "toolUseId", "tool_call_id", "id"]),
            name: text(&["name", "toolName"]),
            content: found.map(result_text).unwrap_or_default(),
            is_error: is_true("is_error") || is_true("isError") || text(&["status"]) == Some("error"),
        }
    }
}

/// Returns the text of a result: its text blocks, or the whole as JSON.
fn result_text(result: &Value) -> String {
    match result {
        Value::Array(blocks) if blocks.iter().any(|block| block.get("text").is_some_and(Value::is_string)) => {
            content(result)
        }
        other => as_text(other),
    }
}
