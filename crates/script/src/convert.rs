//! Converts values to values of the engine, and back.

use std::rc::Rc;

use rquickjs::function::{Constructor, Rest};
use rquickjs::object::{Filter, Property};
use rquickjs::{Array, Ctx, Exception, Object, Type};

use crate::realm::Realm;
use crate::value::{HostFunction, Native, Value};

/// Maximum nesting depth of a converted value.
const DEPTH: usize = 128;

/// Maximum number of values in one conversion.
const COUNT: usize = 2_000_000;

/// Number of values after which the deadline is checked.
const PAUSE: usize = 4_096;

/// Size of the key of a map entry without its text, in bytes.
const ENTRY: usize = size_of::<String>();

/// Approximate size of a request without its arguments, in bytes: its promise and both resolving functions.
const REQUEST: usize = 512;

/// Converts `value` to a value of the engine.
pub(crate) fn to_script<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    value: &Value,
) -> rquickjs::Result<rquickjs::Value<'js>> {
    to_script_at(ctx, realm, value, 0)
}

fn to_script_at<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    value: &Value,
    depth: usize,
) -> rquickjs::Result<rquickjs::Value<'js>> {
    if depth > DEPTH {
        return Err(Exception::throw_range(ctx, "the value is nested too deeply"));
    }
    Ok(match value {
        Value::Undefined => rquickjs::Value::new_undefined(ctx.clone()),
        Value::Null => rquickjs::Value::new_null(ctx.clone()),
        Value::Bool(value) => rquickjs::Value::new_bool(ctx.clone(), *value),
        Value::Number(value) => rquickjs::Value::new_number(ctx.clone(), *value),
        Value::String(text) => rquickjs::String::from_str(ctx.clone(), text)?.into_value(),
        Value::List(items) => {
            let array = Array::new(ctx.clone())?;
            for (index, item) in items.iter().enumerate() {
                array.set(index, to_script_at(ctx, realm, item, depth + 1)?)?;
            }
            array.into_value()
        }
        Value::Map(entries) => {
            let object = Object::new(ctx.clone())?;
            for (key, entry) in entries {
                let entry = to_script_at(ctx, realm, entry, depth + 1)?;
                // An assignment would call a setter that the object inherits under this name.
                object.prop(key.as_str(), Property::from(entry).writable().enumerable().configurable())?;
            }
            object.into_value()
        }
        Value::Regex { source, flags } => {
            let constructor: Constructor<'js> = realm.tools(ctx)?.get("RegExp")?;
            constructor.construct((source.as_str(), flags.as_str()))?
        }
        Value::Function(function) => realm.function(ctx, function)?.into_value(),
        Value::Native(function) => native(ctx, realm, function)?.into_value(),
        Value::HostFunction(request) => host_function(ctx, realm, request)?.into_value(),
    })
}

fn native<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, native: &Native) -> rquickjs::Result<rquickjs::Function<'js>> {
    let (name, realm, native) = (Rc::from(&*native.name), Rc::clone(realm), native.clone());
    function(ctx, &name, move |ctx, rest| {
        let (arguments, _) = arguments(&ctx, &realm, &native.bound, rest, realm.memory)?;
        let result = (native.function)(&arguments).map_err(|message| Exception::throw_message(&ctx, &message))?;
        to_script(&ctx, &realm, &result)
    })
}

fn host_function<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    host_function: &HostFunction,
) -> rquickjs::Result<rquickjs::Function<'js>> {
    let (name, realm, host_function) = (Rc::from(&*host_function.name), Rc::clone(realm), host_function.clone());
    let bound = REQUEST + host_function.bound.iter().map(weight).sum::<usize>();
    function(ctx, &name, move |ctx, rest| {
        // The sizes of all requests in the outbox are added up.
        let room = realm.memory.saturating_sub(realm.owed.get());
        let Some(room) = room.checked_sub(bound) else {
            return Err(Exception::throw_range(&ctx, "too many requests wait for an answer"));
        };
        let (arguments, left) = arguments(&ctx, &realm, &host_function.bound, rest, room)?;
        realm.owed.set(realm.memory - left);
        realm.ask(&ctx, &host_function.name, arguments)
    })
}

/// Creates a JavaScript function from a Rust closure that accepts any arguments.
pub(crate) fn function<'js>(
    ctx: &Ctx<'js>,
    name: &Rc<str>,
    body: impl Fn(Ctx<'js>, Vec<rquickjs::Value<'js>>) -> rquickjs::Result<rquickjs::Value<'js>> + 'js,
) -> rquickjs::Result<rquickjs::Function<'js>> {
    let body = move |ctx: Ctx<'js>, rest: Rest<rquickjs::Value<'js>>| body(ctx, rest.0);
    rquickjs::Function::new(ctx.clone(), body)?.with_name(name)
}

/// Converts the arguments of a call, which come after `bound`, into at most `room` bytes. Also returns the remaining
/// room.
fn arguments<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    bound: &[Value],
    rest: Vec<rquickjs::Value<'js>>,
    room: usize,
) -> rquickjs::Result<(Vec<Value>, usize)> {
    let mut reader = Reader::new(ctx, realm, room);
    let mut arguments = bound.to_vec();
    for value in rest {
        arguments.push(reader.read(value)?);
    }
    Ok((arguments, reader.room))
}

/// Converts a value of the engine to a Rust value.
pub(crate) fn from_script<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    value: rquickjs::Value<'js>,
) -> rquickjs::Result<Value> {
    Reader::new(ctx, realm, realm.memory).read(value)
}

/// Returns the approximate size of a value outside the engine, in bytes.
fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::List(items) => items.iter().map(weight).sum(),
        Value::Map(entries) => entries.iter().map(|(key, entry)| ENTRY + key.len() + weight(entry)).sum(),
        _ => 0,
    };
    size_of::<Value>() + inside
}

struct Reader<'r, 'js> {
    ctx: &'r Ctx<'js>,
    realm: &'r Rc<Realm>,
    /// Objects that contain the object being read.
    above: Vec<rquickjs::Value<'js>>,
    count: usize,
    /// Number of bytes left for values outside the engine.
    room: usize,
}

impl<'r, 'js> Reader<'r, 'js> {
    fn new(ctx: &'r Ctx<'js>, realm: &'r Rc<Realm>, room: usize) -> Self {
        Self { ctx, realm, above: Vec::new(), count: 0, room }
    }

    fn too_large(&self) -> rquickjs::Error {
        Exception::throw_range(self.ctx, "the value is too large")
    }

    fn take(&mut self, bytes: usize) -> rquickjs::Result<()> {
        self.room = self.room.checked_sub(bytes).ok_or_else(|| self.too_large())?;
        Ok(())
    }

    fn read(&mut self, value: rquickjs::Value<'js>) -> rquickjs::Result<Value> {
        self.count += 1;
        if self.count > COUNT {
            return Err(self.too_large());
        }
        // Reading plain values does not run code that the engine could interrupt.
        if self.count.is_multiple_of(PAUSE) && self.realm.deadline.has_passed() {
            return Err(Exception::throw_message(self.ctx, "interrupted"));
        }
        self.take(size_of::<Value>())?;
        match value.type_of() {
            Type::Null => Ok(Value::Null),
            Type::Bool => Ok(Value::Bool(value.as_bool().unwrap_or_default())),
            Type::Int | Type::Float => Ok(Value::Number(value.as_number().unwrap_or(f64::NAN))),
            Type::String => self.text(value).map(Value::String),
            Type::BigInt => self.replace(value),
            Type::Function | Type::Constructor => self.function(value),
            Type::Array => self.inside(value, Self::list),
            _ if value.is_object() => self.inside(value, Self::object),
            _ => Ok(Value::Undefined),
        }
    }

    fn text(&mut self, value: rquickjs::Value<'js>) -> rquickjs::Result<String> {
        let text = text(self.ctx, self.realm, value)?;
        self.take(text.len())?;
        Ok(text)
    }

    fn function(&self, value: rquickjs::Value<'js>) -> rquickjs::Result<Value> {
        match value.into_function() {
            Some(function) => self.realm.keep(self.ctx, function).map(Value::Function),
            None => Ok(Value::Undefined),
        }
    }

    fn inside(
        &mut self,
        value: rquickjs::Value<'js>,
        read: fn(&mut Self, Object<'js>) -> rquickjs::Result<Value>,
    ) -> rquickjs::Result<Value> {
        if self.above.contains(&value) {
            return Err(Exception::throw_type(self.ctx, "the value contains itself"));
        }
        if self.above.len() >= DEPTH {
            return Err(Exception::throw_range(self.ctx, "the value is nested too deeply"));
        }
        let Some(object) = value.as_object().cloned() else { return Ok(Value::Undefined) };
        self.above.push(value);
        let done = read(self, object);
        self.above.pop();
        done
    }

    fn list(&mut self, object: Object<'js>) -> rquickjs::Result<Value> {
        // Read as a number, because a length may exceed the engine's integers.
        let length: f64 = object.get("length")?;
        let Some(array) = object.into_array() else { return Ok(Value::Undefined) };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let length = length as usize;
        if length > COUNT {
            return Err(self.too_large());
        }
        let mut items = Vec::with_capacity(length.min(1024));
        for index in 0..length {
            items.push(self.read(array.get(index)?)?);
        }
        Ok(Value::List(items))
    }

    fn object(&mut self, object: Object<'js>) -> rquickjs::Result<Value> {
        let kind: rquickjs::Function<'js> = self.realm.tools(self.ctx)?.get("kind")?;
        match kind.call::<_, i32>((object.clone(),))? {
            0 => self.map(&object),
            1 => {
                let source = self.text(object.get("source")?)?;
                Ok(Value::Regex { source, flags: self.text(object.get("flags")?)? })
            }
            _ => self.replace(object.into_value()),
        }
    }

    fn map(&mut self, object: &Object<'js>) -> rquickjs::Result<Value> {
        let mut entries = Vec::new();
        for key in object.own_keys::<rquickjs::String<'js>>(Filter::new().string().enum_only()) {
            let key = key?;
            let value = object.get(key.clone())?;
            self.take(ENTRY)?;
            entries.push((self.text(key.into_value())?, self.read(value)?));
        }
        Ok(Value::Map(entries))
    }

    /// Returns the replacement of a value that has no counterpart in Rust.
    fn replace(&mut self, value: rquickjs::Value<'js>) -> rquickjs::Result<Value> {
        let replace: rquickjs::Function<'js> = self.realm.tools(self.ctx)?.get("replace")?;
        let stands_for: rquickjs::Value<'js> = replace.call((value,))?;
        self.read(stands_for)
    }
}

/// Returns the text of `value`, or an empty string if it is not a string. An unpaired surrogate cannot be represented
/// in Rust.
pub(crate) fn text<'js>(ctx: &Ctx<'js>, realm: &Realm, value: rquickjs::Value<'js>) -> rquickjs::Result<String> {
    let Some(text) = value.as_string() else { return Ok(String::new()) };
    if let Ok(text) = text.to_string() {
        return Ok(text);
    }
    let well_formed: rquickjs::Function<'js> = realm.tools(ctx)?.get("wellFormed")?;
    well_formed.call((value,))
}
