//! `trialrun config`.

use std::process::ExitCode;

use mask::{Mask, Secrets};
use model::{Node, NodeKind};
use report::columns;
use serde_json::{Value, json};

use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use session::overrides::Overrides;

/// Arguments of `config`.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    /// Print JSON
    // Placed before the groups of `run`, because otherwise it would appear under their last heading.
    #[arg(long)]
    json: bool,
    /// Arguments of `run`, whose settings are shown
    #[command(flatten)]
    run: Overrides,
}

/// Sections whose keys are already shown as settings, and one that is equivalent to a separate file.
const SHOWN_ABOVE: [&str; 6] = ["defaults", "eval", "skills_dir", "tests", "state", "fixtures"];

/// Replacement for a secret.
const HIDDEN: &str = "***";

/// Line of the table.
struct Line {
    name: String,
    value: Value,
    layer: String,
}

/// Shows every setting and its source.
pub fn run(global: &Global, args: &ConfigArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if let Some(word @ ("set" | "get" | "unset")) = args.run.targets.first().map(String::as_str)
        && !std::path::Path::new(word).exists()
    {
        return Err(CliError::usage(format!("`{word}` is not a test, and `config` only shows settings"))
            .hint("settings are changed in the configuration, `trialrun.yaml`, or by options"));
    }
    let (context, spec) = place::resolve(global, &args.run)?;
    let is_unknown = |word: &&String| {
        let is_place = word.contains(['/', '.', ':']) || std::path::Path::new(word).exists();
        !is_place && !context.project.skills_dir.join(word).exists()
    };
    if let Some(word) = args.run.targets.iter().find(is_unknown) {
        return Err(CliError::usage(format!("`{word}` is not a test or a skill"))
            .hint("`trialrun config` shows all settings; the arguments are those of `run`"));
    }
    let problems: Vec<_> = context.diagnostics.iter().chain(spec.problems()).cloned().collect();
    terminal.diagnostics(&problems);
    terminal.notes(spec.notes());
    let mask = context.mask();
    let rows = spec.rows().iter().map(|row| {
        let mut value = row.value.clone();
        hide(&mut value, &mask);
        Line { name: row.name.clone(), value, layer: row.layer.to_string() }
    });
    let mut lines: Vec<Line> = rows.collect();
    if let Some(Node { kind: NodeKind::Map(entries), .. }) = &context.project.tree {
        let mut more = Vec::new();
        for (name, node) in entries.iter().filter(|(name, _)| !SHOWN_ABOVE.contains(&name.value.as_str())) {
            written(("", &name.value), name.value.clone(), node, &mask, &mut more);
        }
        // Each setting is shown once, with its effective value.
        more.retain(|line| lines.iter().all(|known| known.name != line.name));
        lines.extend(more);
    }
    if args.json {
        let lines: Vec<_> =
            lines.iter().map(|line| json!({"name": line.name, "value": line.value, "layer": line.layer})).collect();
        terminal.json(&lines);
    } else {
        terminal.out(&table(&lines));
    }
    let invalid = problems.iter().any(model::Diagnostic::is_error);
    Ok(ExitCode::from(if invalid { exit::INVALID } else { exit::PASSED }))
}

/// Adds the values below `node`, which is called `name` and is stored under `key` in the map called `section`.
fn written((section, key): (&str, &str), name: String, node: &Node, mask: &Mask, lines: &mut Vec<Line>) {
    match &node.kind {
        NodeKind::Map(entries) if !entries.is_empty() => {
            for (inner, value) in entries {
                written((key, &inner.value), format!("{name}.{}", inner.value), value, mask, lines);
            }
        }
        _ => {
            let is_secret = node.as_str().is_some_and(|text| Secrets::is_one(section, key, text));
            let mut value = match &node.tag {
                Some(_) => Value::String("(code)".into()),
                None if is_secret => Value::String(HIDDEN.into()),
                None => node.to_json(),
            };
            hide(&mut value, mask);
            let place = node.excerpt();
            lines.push(Line { name, value, layer: format!("{}:{}", place.file, place.line) });
        }
    }
}

/// Masks the secrets in `value`.
fn hide(value: &mut Value, mask: &Mask) {
    match value {
        Value::String(text) => {
            mask.string(text);
            *text = text.replace(MASKED, HIDDEN);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, mask)),
        _ => mask.value(value),
    }
}

/// Text that the mask inserts in place of a secret.
const MASKED: &str = "[masked]";

fn table(lines: &[Line]) -> String {
    let shown = |line: &Line| match &line.value {
        Value::Null => "—".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let values: Vec<String> = lines.iter().map(shown).collect();
    let names = columns::widest(lines.iter().map(|line| &line.name));
    let width = columns::widest(&values).min(48);
    let row = |(line, value): (&Line, &String)| {
        format!("{:names$}  {}  {}\n", line.name, columns::padded(value, width), line.layer)
    };
    lines.iter().zip(&values).map(row).collect()
}
