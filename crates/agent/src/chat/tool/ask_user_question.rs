//! The tool that asks the user.

use serde_json::{Value, json};

use super::{Arguments, Run, Tool, ToolOutput};
use crate::turn::Turn;

pub(super) const TOOL: Tool = Tool {
    name: "AskUserQuestion",
    description: "Asks the user one or more questions, each with labels to choose from, and gives the answers.",
    schema,
    run: Run::InContext(|arguments, call| Box::pin(std::future::ready(ask(arguments, call.id, call.turn)))),
};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "questions": {
                "type": "array",
                "minItems": 1,
                "description": "The questions",
                "items": {
                    "type": "object",
                    "properties": {
                        "question": {"type": "string"},
                        "header": {"type": "string", "description": "A word or two above the question"},
                        "multiSelect": {"type": "boolean", "description": "Whether several labels may be chosen"},
                        "options": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {"label": {"type": "string"}, "description": {"type": "string"}},
                                "required": ["label"],
                            },
                        },
                    },
                    "required": ["question", "options"],
                },
            },
        },
        "required": ["questions"],
        "additionalProperties": false,
    })
}

struct Question {
    text: String,
    labels: Vec<String>,
    multi_select: bool,
}

fn ask(mut arguments: Arguments, id: &str, turn: &mut Turn) -> ToolOutput {
    let given = arguments.value("questions").unwrap_or_default();
    let Value::Array(given) = given else {
        return Err("Invalid arguments: `questions` must be a list".to_owned());
    };
    if given.is_empty() {
        return Err("Invalid arguments: `questions` is empty".to_owned());
    }
    // All questions are parsed before the first is asked, because an answer can be used only once.
    let questions: Vec<Question> = given.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let told = questions.iter().map(|question| {
        let answer = turn.ask(Some(id), &question.text, &question.labels, question.multi_select);
        match answer {
            Some(answer) => format!("{}\n→ {answer}", question.text),
            None => format!("{}\n(no answer was prepared for this question)", question.text),
        }
    });
    Ok(told.collect::<Vec<_>>().join("\n"))
}

fn read((at, given): (usize, &Value)) -> Result<Question, String> {
    let Some(text) = given.get("question").and_then(Value::as_str).filter(|text| !text.is_empty()) else {
        return Err(format!("Invalid arguments: `questions[{at}].question` must be a text"));
    };
    let labels = match given.get("options") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(options)) => options
            .iter()
            .map(|option| option.get("label").unwrap_or(option).as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| format!("Invalid arguments: each of `questions[{at}].options` must have a `label`"))?,
        Some(_) => return Err(format!("Invalid arguments: `questions[{at}].options` must be a list")),
    };
    let multi_select = given.get("multiSelect").and_then(Value::as_bool).unwrap_or(false);
    Ok(Question { text: text.to_owned(), labels, multi_select })
}
