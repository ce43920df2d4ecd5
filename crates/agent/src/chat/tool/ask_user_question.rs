//! The tool that asks the user questions.

use model::Question;
use serde_json::{Value, json};

use super::{Arguments, Run, Tool, ToolOutput};
use crate::turn::Turn;

pub(super) const TOOL: Tool = Tool {
    name: "AskUserQuestion",
    description: "Asks the user one or more questions, each with labels to choose from, and returns the answers.",
    properties,
    required: &["questions"],
    run: Run::InContext(|arguments, call| Box::pin(std::future::ready(ask(arguments, call.id, call.turn)))),
};

fn properties() -> Value {
    json!({
        "questions": {
            "type": "array",
            "minItems": 1,
            "description": "The questions, each as `{question, options: [{label, description}], header, multiSelect}`",
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
    })
}

fn ask(mut arguments: Arguments, id: &str, turn: &mut Turn) -> ToolOutput {
    let given = arguments.value("questions").unwrap_or_default();
    let Value::Array(given) = given else {
        return Err("Invalid arguments: `questions` must be a list".to_owned());
    };
    if given.is_empty() {
        return Err("Invalid arguments: `questions` is empty".to_owned());
    }
    // All questions are parsed before the first is asked, because each answer can be used only once.
    let questions: Vec<Question> =
        given.iter().enumerate().map(|(index, given)| read(id, index, given)).collect::<Result<_, _>>()?;
    let answers = questions.into_iter().map(|question| {
        let text = question.question.clone();
        match turn.ask(question) {
            Some(answer) => format!("{text}\n→ {answer}"),
            None => format!("{text}\n(no answer was prepared for this question)"),
        }
    });
    Ok(answers.collect::<Vec<_>>().join("\n"))
}

fn read(id: &str, index: usize, given: &Value) -> Result<Question, String> {
    let Some(text) = given.get("question").and_then(Value::as_str).filter(|text| !text.is_empty()) else {
        return Err(format!("Invalid arguments: `questions[{index}].question` must be a string"));
    };
    let options = match given.get("options") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(options)) => options
            .iter()
            .map(|option| option.get("label").unwrap_or(option).as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| format!("Invalid arguments: each of `questions[{index}].options` must have a `label`"))?,
        Some(_) => return Err(format!("Invalid arguments: `questions[{index}].options` must be a list")),
    };
    let multi_select = given.get("multiSelect").and_then(Value::as_bool).unwrap_or(false);
    let (call_id, question) = (Some(id.to_owned()), text.to_owned());
    Ok(Question { call_id, question, options, multi_select, ..Question::default() })
}
