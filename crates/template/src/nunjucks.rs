//! Templates in Nunjucks, as suites of other tools contain them. They are translated into the default dialect, from
//! which they differ as follows: white space around statements is kept, `default` and conditions accept names that do
//! not exist, loops with two names accept maps, and there are more filters and methods. Printing a name that does not
//! exist remains an error, although Nunjucks prints nothing.

use model::Node;

use crate::error::TemplateError;
use crate::filter::FILTERS;
use crate::number::Number;
use crate::operation::{Call, Operation, named, operation, text};
use crate::value::{Style, Value, join};

/// Filters that the default dialect does not have, or not with this meaning. `default` and `d` are handled before their
/// operand is needed, because there may be none.
const OWN_FILTERS: &[Operation] = &[
    operation("default(value, boolean=false)", 1, |call| Ok(call.operand.clone())),
    operation("d(value, boolean=false)", 1, |call| Ok(call.operand.clone())),
    operation("dump(indent=0)", 0, dump),
    operation("load", 0, load),
    operation("safe", 0, |call| Ok(call.operand.clone())),
    operation("escape", 0, escape),
    operation("e", 0, escape),
    operation("forceescape", 0, escape),
    operation("replace(old, new, count)", 2, replace),
    operation("round(precision=0, method=\"common\")", 0, round),
    operation("sum", 0, sum),
    operation("truncate(length=255, killwords=false, end=\"...\")", 0, truncate),
    operation("join(sep=\"\")", 0, |call| joined(call, "")),
    operation("wordcount", 0, |call| Ok(Value::count(call.operand.to_text()?.split_whitespace().count()))),
    operation("list", 0, list),
    text("nl2br", |text| text.replace('\n', "<br />\n")),
    text("urlencode", url_encoded),
];

/// Methods of JavaScript's strings.
const TEXT_METHODS: &[Operation] = &[
    text("toUpperCase", str::to_uppercase),
    text("toLowerCase", str::to_lowercase),
    text("trim", |text| text.trim().to_owned()),
    operation("includes(text)", 1, |call| {
        Ok(Value::Bool(call.text()?.contains(call.text_argument(0)?.unwrap_or_default())))
    }),
    operation("startsWith(text)", 1, |call| {
        Ok(Value::Bool(call.text()?.starts_with(call.text_argument(0)?.unwrap_or_default())))
    }),
    operation("endsWith(text)", 1, |call| {
        Ok(Value::Bool(call.text()?.ends_with(call.text_argument(0)?.unwrap_or_default())))
    }),
    operation("replace(old, new)", 2, |call| {
        let (old, new) = (call.text_argument(0)?.unwrap_or_default(), call.text_argument(1)?.unwrap_or_default());
        Ok(Value::Text(call.text()?.replacen(old, new, 1).into()))
    }),
];

/// Methods of JavaScript's arrays.
const LIST_METHODS: &[Operation] = &[operation("join(sep=\",\")", 0, |call| joined(call, ","))];

/// Returns the filter called `name`, if Nunjucks differs from the default dialect.
pub(crate) fn filter(name: &str) -> Option<&'static Operation> {
    named(OWN_FILTERS, name)
}

/// Returns the method called `name` of `value`, if the default dialect does not have it.
pub(crate) fn method(value: &Value, name: &str) -> Option<&'static Operation> {
    match value {
        Value::Text(_) => named(TEXT_METHODS, name),
        Value::List(_) => named(LIST_METHODS, name),
        _ => None,
    }
}

/// Returns the names of all filters.
pub(crate) fn filter_names() -> impl Iterator<Item = &'static str> {
    OWN_FILTERS.iter().chain(FILTERS).map(Operation::name)
}

/// Returns two operands: if one is a number and the other a text that contains one, both are numbers, as in JavaScript.
/// Tables have numbers as texts.
pub(crate) fn alike(left: Value, right: Value) -> (Value, Value) {
    let number = |one: &Value, other: &Value| match (one, other) {
        (Value::Text(text), Value::Number(_)) => {
            let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite())?;
            Some(Value::Number(Number::from_f64(number)))
        }
        _ => None,
    };
    let (own, other) = (number(&left, &right), number(&right, &left));
    (own.unwrap_or(left), other.unwrap_or(right))
}

/// Translates the parts of Nunjucks that the default dialect writes in another way. Comments are removed, and raw text
/// becomes the text of a placeholder.
pub(crate) fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        if let Some(after) = rest.strip_prefix("{#").and_then(|inside| Some(inside.split_once("#}")?.1)) {
            rest = after;
            continue;
        }
        if let Some((raw, after)) = raw_text(rest) {
            out.push_str(&format!("{{{{ {} }}}}", quoted(raw)));
            rest = after;
            continue;
        }
        match tag(rest) {
            Some(length) => {
                push_tag(&rest[..length], &mut out);
                rest = &rest[length..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns the text between `{% raw %}` at the start of `text` and its end, and the text after it.
fn raw_text(text: &str) -> Option<(&str, &str)> {
    let (word, inside) = statement(text).filter(|(word, _)| matches!(*word, "raw" | "verbatim"))?;
    let end = format!("end{word}");
    let mut at = 0;
    loop {
        let open = inside[at..].find("{%")? + at;
        if let Some((found, after)) = statement(&inside[open..])
            && found == end
        {
            return Some((&inside[..open], after));
        }
        at = open + 2;
    }
}

/// Returns the only word of the statement at the start of `text`, and the text after it.
fn statement(text: &str) -> Option<(&str, &str)> {
    let (inside, after) = text.strip_prefix("{%")?.split_once("%}")?;
    let inside = inside.strip_prefix('-').unwrap_or(inside);
    Some((inside.strip_suffix('-').unwrap_or(inside).trim(), after))
}

/// Returns the length of the tag at the start of `text`.
fn tag(text: &str) -> Option<usize> {
    let close = match text.as_bytes().get(1)? {
        b'{' => "}}",
        b'%' => "%}",
        _ => return None,
    };
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(2) {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            None if text[at..].starts_with(close) => return Some(at + close.len()),
            None => {}
        }
    }
    None
}

/// Adds `tag` with the operators and words of the default dialect.
fn push_tag(tag: &str, out: &mut String) {
    let mut quote = None;
    let mut at = 0;
    while let Some(letter) = tag[at..].chars().next() {
        let rest = &tag[at..];
        let is_start = !tag[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '.');
        let mut take = |written: &str, becomes: &str| {
            out.push_str(becomes);
            at += written.len();
        };
        match quote {
            Some(open) => {
                let length = letter.len_utf8();
                let escaped = rest[length..].chars().next().filter(|_| letter == '\\');
                quote = quote.filter(|_| letter != open);
                let length = length + escaped.map_or(0, char::len_utf8);
                take(&rest[..length], &rest[..length]);
            }
            None if rest.starts_with("===") => take("===", "=="),
            None if rest.starts_with("!==") => take("!==", "!="),
            None if is_start && is_word(rest, "elseif") => take("elseif", "elif"),
            None if is_start && is_word(rest, "null") => take("null", "none"),
            None => {
                quote = Some(letter).filter(|letter| matches!(letter, '\'' | '"'));
                take(&rest[..letter.len_utf8()], &rest[..letter.len_utf8()]);
            }
        }
    }
}

/// Returns `true` if `text` begins with the whole word `word`.
fn is_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
}

/// Returns `text` as a string literal of the dialect.
fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => literal.extend(['\\', letter]),
            '\n' => literal.push_str("\\n"),
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}

fn dump(call: &Call<'_>) -> Result<Value, TemplateError> {
    let indent = call.whole_argument(0)?.and_then(|indent| usize::try_from(indent).ok()).unwrap_or(0);
    let style = if indent == 0 { Style::COMPACT } else { Style { comma: ",", colon: ": ", indent } };
    let mut out = String::new();
    call.operand.print_json(&style, 0, &mut out)?;
    Ok(Value::Text(out.into()))
}

fn load(call: &Call<'_>) -> Result<Value, TemplateError> {
    let value: serde_json::Value = serde_json::from_str(call.text()?)
        .map_err(|error| TemplateError::new(format!("`load` needs a string that is JSON: {error}")))?;
    Value::from_node(&Node::from_json(&value, &model::Source::new("", "")))
}

fn escape(call: &Call<'_>) -> Result<Value, TemplateError> {
    let mut escaped = String::new();
    for letter in call.operand.to_text()?.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '`' => escaped.push_str("&#96;"),
            '\\' => escaped.push_str("&#92;"),
            other => escaped.push(other),
        }
    }
    Ok(Value::Text(escaped.into()))
}

fn replace(call: &Call<'_>) -> Result<Value, TemplateError> {
    let whole = call.operand.to_text()?;
    let (old, new) = (call.value(0).to_text()?, call.value(1).to_text()?);
    if old.is_empty() {
        return Err(TemplateError::new("`replace` needs a text to look for"));
    }
    let count = call.whole_argument(2)?.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    Ok(Value::Text(whole.replacen(&*old, &new, count).into()))
}

fn round(call: &Call<'_>) -> Result<Value, TemplateError> {
    let Value::Number(number) = call.operand else { return Err(call.not_for("a number")) };
    let precision = call.whole_argument(0)?.unwrap_or(0).clamp(0, 15);
    let factor = 10_f64.powi(i32::try_from(precision).unwrap_or(0));
    let scaled = number.as_double() * factor;
    let rounded = match call.text_argument(1)? {
        Some("ceil") => scaled.ceil(),
        Some("floor") => scaled.floor(),
        // JavaScript rounds halves up.
        _ => (scaled + 0.5).floor(),
    };
    Ok(Value::Number(Number::from_f64(rounded / factor)))
}

fn sum(call: &Call<'_>) -> Result<Value, TemplateError> {
    let mut sum = Number::Whole(0);
    for item in call.items()? {
        let Value::Number(number) = item else { return Err(call.not_for("a list of numbers")) };
        sum = sum.add(*number);
    }
    Ok(Value::Number(sum))
}

fn truncate(call: &Call<'_>) -> Result<Value, TemplateError> {
    let whole = call.text()?;
    let length = call.whole_argument(0)?.and_then(|length| usize::try_from(length).ok()).unwrap_or(255);
    let Some((end, _)) = whole.char_indices().nth(length) else { return Ok(call.operand.clone()) };
    let kept = &whole[..end];
    let kept = if call.flag(1) { kept } else { kept.rfind(' ').map_or(kept, |space| &kept[..space]) };
    Ok(Value::Text(format!("{kept}{}", call.text_argument(2)?.unwrap_or("...")).into()))
}

fn joined(call: &Call<'_>, separator: &str) -> Result<Value, TemplateError> {
    let mut joined = String::new();
    join(call.items()?, call.text_argument(0)?.unwrap_or(separator), &mut joined)?;
    Ok(Value::Text(joined.into()))
}

fn list(call: &Call<'_>) -> Result<Value, TemplateError> {
    match call.operand {
        Value::Text(text) => Value::list(text.chars().map(|letter| Value::text(&letter.to_string())).collect()),
        other => Ok(other.clone()),
    }
}

fn url_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => encoded.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' => encoded.push(char::from(byte)),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}
