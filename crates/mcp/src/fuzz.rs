//! Arguments generated from the schema of a tool's input.

use serde_json::{Map, Number, Value, json};

/// Maximum depth of generated values.
const MAX_DEPTH: usize = 6;

/// Generated arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// What is special about them.
    pub about: String,
    /// The arguments.
    pub arguments: Value,
}

/// Returns up to `count` inputs for a schema. The same seed gives the same inputs.
pub fn inputs(schema: &Value, seed: u64, count: usize) -> Vec<Input> {
    let mut generator = Generator { random: seed, root: schema };
    let plain = generator.value(schema, 0);
    let plain = if plain.is_object() { plain } else { json!({}) };
    let mut inputs = vec![Input { about: "valid arguments".to_owned(), arguments: plain.clone() }];
    let mut more = generator.around(schema, &plain);
    // The order is random, so that a small number of inputs covers all arguments in some run.
    for at in (1..more.len()).rev() {
        more.swap(at, generator.below(at + 1));
    }
    inputs.extend(more);
    let mut seen = Vec::new();
    inputs.retain(|input| {
        let text = input.arguments.to_string();
        let is_new = !seen.contains(&text);
        seen.push(text);
        is_new
    });
    inputs.truncate(count);
    inputs
}

struct Generator<'a> {
    random: u64,
    root: &'a Value,
}

impl Generator<'_> {
    /// Returns the next random number.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or_default()
    }

    /// Follows a reference within the schema.
    fn resolved(&self, schema: &Value) -> Value {
        let mut schema = schema.clone();
        for _ in 0..MAX_DEPTH {
            let target = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
            let Some(target) = target.and_then(|path| self.root.pointer(path)) else { break };
            schema = target.clone();
        }
        schema
    }

    /// Returns a value that should be valid. Keywords that are not understood may make it invalid.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        let schema = self.resolved(schema);
        for key in ["const", "default"] {
            if let Some(value) = schema.get(key) {
                return value.clone();
            }
        }
        for key in ["examples", "enum"] {
            if let Some(items) = schema[key].as_array().filter(|items| !items.is_empty()) {
                let at = self.below(items.len());
                return items[at].clone();
            }
        }
        for key in ["oneOf", "anyOf", "allOf"] {
            if let Some(first) = schema[key].as_array().and_then(|items| items.first()) {
                let mut merged = schema.clone();
                if let (Some(into), Some(from)) = (merged.as_object_mut(), self.resolved(first).as_object()) {
                    into.remove(key);
                    into.extend(from.clone());
                }
                return self.value(&merged, depth + 1);
            }
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.first().and_then(Value::as_str).unwrap_or("string").to_owned(),
            Value::String(kind) => kind.clone(),
            _ if schema.get("properties").is_some() => "object".to_owned(),
            _ => "string".to_owned(),
        };
        match kind.as_str() {
            "object" => {
                let required: Vec<&str> = required(&schema);
                let mut map = Map::new();
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    if required.contains(&name.as_str()) || (depth < 2 && self.below(2) == 0) {
                        map.insert(
                            name.clone(),
                            if depth < MAX_DEPTH { self.value(property, depth + 1) } else { Value::Null },
                        );
                    }
                }
                Value::Object(map)
            }
            "array" => {
                let least = schema["minItems"].as_u64().unwrap_or(1).min(100);
                let least = if depth < MAX_DEPTH { least } else { 0 };
                (0..least).map(|_| self.value(&schema["items"], depth + 1)).collect()
            }
            "integer" | "number" => self.number(&schema, kind == "integer"),
            "boolean" => json!(self.below(2) == 0),
            "null" => Value::Null,
            _ => self.text(&schema).into(),
        }
    }

    fn number(&mut self, schema: &Value, is_whole: bool) -> Value {
        let least = schema["minimum"].as_f64().or(schema["exclusiveMinimum"].as_f64().map(|least| least + 1.0));
        let most = schema["maximum"].as_f64().or(schema["exclusiveMaximum"].as_f64().map(|most| most - 1.0));
        let least = least.unwrap_or(most.map_or(1.0, |most| most - 9.0));
        let most = most.unwrap_or(least + 9.0).max(least);
        let step = schema["multipleOf"].as_f64().filter(|step| *step > 0.0);
        let part = self.below(10) as f64 / 9.0;
        let mut number = least + (most - least) * part;
        if let Some(step) = step {
            number = (number / step).round() * step;
        } else if is_whole {
            number = number.round();
        }
        if is_whole { json!(number as i64) } else { Number::from_f64(number).map_or(json!(1), Value::Number) }
    }

    fn text(&mut self, schema: &Value) -> String {
        let of_format = match schema["format"].as_str() {
            Some("date") => Some("2026-01-31"),
            Some("date-time") => Some("2026-01-31T12:00:00Z"),
            Some("time") => Some("12:00:00Z"),
            Some("email") => Some("ada@example.com"),
            Some("uri" | "url") => Some("https://example.com/"),
            Some("uuid") => Some("123e4567-e89b-42d3-a456-426614174000"),
            Some("ipv4") => Some("127.0.0.1"),
            _ => None,
        };
        let words = ["alpha", "beta", "gamma", "delta"];
        let mut text = of_format.unwrap_or(words[self.below(words.len())]).to_owned();
        let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0).min(100_000)).unwrap_or_default();
        while text.len() < least {
            text.push('x');
        }
        let most = usize::try_from(schema["maxLength"].as_u64().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        text.chars().take(most).collect()
    }

    /// Returns arguments that differ from `plain` in one place each.
    fn around(&mut self, schema: &Value, plain: &Value) -> Vec<Input> {
        let schema = self.resolved(schema);
        let mut inputs = Vec::new();
        let mut put = |about: String, arguments: Value| inputs.push(Input { about, arguments });
        put("no arguments".to_owned(), json!({}));
        put("arguments that are null".to_owned(), Value::Null);
        put("arguments that are a list".to_owned(), json!([]));
        put("an argument that the schema does not have".to_owned(), with(plain, "trialrun_extra", json!("x")));
        put("an argument called `__proto__`".to_owned(), with(plain, "__proto__", json!({"a": 1})));
        for name in required(&schema) {
            put(format!("without `{name}`"), without(plain, name));
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let property = self.resolved(property);
            for (about, value) in self.unusual(&property) {
                put(format!("`{name}` is {about}"), with(plain, name, value));
            }
        }
        inputs
    }

    /// Returns values of all types, and those at the bounds of a schema.
    fn unusual(&mut self, schema: &Value) -> Vec<(String, Value)> {
        let mut values: Vec<(String, Value)> = vec![
            ("null".to_owned(), Value::Null),
            ("true".to_owned(), json!(true)),
            ("a number".to_owned(), json!(7)),
            ("a fraction".to_owned(), json!(0.5)),
            ("a negative number".to_owned(), json!(-1)),
            ("a huge number".to_owned(), json!(9_007_199_254_740_993_u64)),
            ("a list".to_owned(), json!(["x"])),
            ("a map".to_owned(), json!({"x": 1})),
            ("an empty text".to_owned(), json!("")),
        ];
        let texts = [
            ("text in other scripts", "Grüße, 世界, مرحبا, 👩‍💻".to_owned()),
            ("text with control characters", "a\u{0}b\r\n\t\u{1b}[31m\u{202e}".to_owned()),
            ("a long text", "x".repeat(100_000)),
            ("a path out of the folder", "../../../../etc/passwd".to_owned()),
            ("text with quotes", "'\"`; -- $(id) ${7*7} {{7*7}} %s%n".to_owned()),
        ];
        values.extend(texts.map(|(about, text)| (about.to_owned(), text.into())));
        for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
            if let Some(bound) = schema[key].as_i64() {
                values.extend(
                    [-1, 0, 1].map(|by| (format!("{bound}{by:+}, around `{key}`"), json!(bound.saturating_add(by)))),
                );
            }
        }
        for key in ["minLength", "maxLength"] {
            if let Some(bound) = schema[key].as_u64().filter(|bound| *bound < 1_000_000) {
                for length in [bound.saturating_sub(1), bound, bound + 1] {
                    let text = "x".repeat(usize::try_from(length).unwrap_or_default());
                    values.push((format!("text of {length} characters, around `{key}`"), text.into()));
                }
            }
        }
        for key in ["minItems", "maxItems"] {
            if let Some(bound) = schema[key].as_u64().filter(|bound| *bound < 10_000) {
                for length in [bound.saturating_sub(1), bound, bound + 1] {
                    let items: Vec<Value> = (0..length).map(|_| self.value(&schema["items"], 1)).collect();
                    values.push((format!("{length} items, around `{key}`"), items.into()));
                }
            }
        }
        if let Some(items) = schema["enum"].as_array() {
            values.extend(items.iter().map(|item| (format!("{item}, which is allowed"), item.clone())));
            values.push(("a value that is not allowed".to_owned(), json!("trialrun-unknown")));
        }
        values
    }
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn with(plain: &Value, key: &str, value: Value) -> Value {
    let mut changed = plain.clone();
    changed[key] = value;
    changed
}

fn without(plain: &Value, key: &str) -> Value {
    let mut changed = plain.clone();
    if let Some(map) = changed.as_object_mut() {
        map.remove(key);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_reproducible_and_cover_bounds_types_and_missing_arguments() {
        let schema = json!({
            "type": "object",
            "$defs": {"unit": {"enum": ["m", "km"]}},
            "properties": {
                "n": {"type": "integer", "minimum": 3, "maximum": 5},
                "unit": {"$ref": "#/$defs/unit"},
                "name": {"type": "string", "minLength": 2, "maxLength": 4},
            },
            "required": ["n", "unit", "name"],
        });
        let all = inputs(&schema, 1, 1000);
        assert_eq!(all, inputs(&schema, 1, 1000));
        assert_ne!(inputs(&schema, 1, 9), inputs(&schema, 2, 9));
        assert_eq!(inputs(&schema, 1, 9).len(), 9);
        let plain = &all[0].arguments;
        assert!((3..=5).contains(&plain["n"].as_i64().unwrap()), "{plain}");
        assert!(["m", "km"].contains(&plain["unit"].as_str().unwrap()), "{plain}");
        assert!((2..=4).contains(&plain["name"].as_str().unwrap().len()), "{plain}");
        for wanted in [json!(2), json!(6), json!("x"), json!(null), json!([])] {
            let is_there = |input: &Input| ["n", "name"].iter().any(|key| input.arguments[*key] == wanted);
            assert!(wanted == json!([]) || all.iter().any(is_there), "{wanted}");
        }
        assert!(all.iter().any(|input| input.about == "without `unit`" && input.arguments.get("unit").is_none()));
        assert!(all.iter().any(|input| input.arguments.is_null()));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]});
        assert!(!inputs(&schema, 1, 10).is_empty());
        let endless = json!({"$ref": "#", "anyOf": [{"$ref": "#"}]});
        assert!(!inputs(&endless, 1, 10).is_empty());
    }
}
