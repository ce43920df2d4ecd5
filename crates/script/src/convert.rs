//! Values made into those of the engine, and back.

use std::rc::Rc;

use rquickjs::function::{Constructor, Rest};
use rquickjs::object::{Filter, Property};
use rquickjs::{Array, Ctx, Exception, Object, Type};

use crate::realm::Realm;
use crate::value::{Asks, Function, Native, Value};

/// How deep a value may nest on its way across.
const DEPTH: usize = 128;

/// How many values may cross at once.
const COUNT: usize = 2_000_000;

/// Makes a value of the engine from `value`.
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
                if key == "__proto__" {
                    // Setting it would change what the object is.
                    object.prop(key.as_str(), Property::from(entry).writable().enumerable().configurable())?;
                } else {
                    object.set(key.as_str(), entry)?;
                }
            }
            object.into_value()
        }
        Value::Regex { source, flags } => {
            let constructor: Constructor<'js> = realm.tools(ctx)?.get("RegExp")?;
            constructor.construct((source.as_str(), flags.as_str()))?
        }
        Value::Function(function) => realm.function(ctx, function)?.into_value(),
        Value::Native(function) => native(ctx, realm, function)?.into_value(),
        Value::Asks(request) => asks(ctx, realm, request)?.into_value(),
    })
}

fn native<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, native: &Native) -> rquickjs::Result<rquickjs::Function<'js>> {
    let (name, realm, native) = (Rc::from(&*native.name), Rc::clone(realm), native.clone());
    function(ctx, &name, move |ctx, rest| {
        let arguments = arguments(&ctx, &realm, &native.bound, rest)?;
        let result = (native.function)(&arguments).map_err(|message| Exception::throw_message(&ctx, &message))?;
        to_script(&ctx, &realm, &result)
    })
}

fn asks<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, asks: &Asks) -> rquickjs::Result<rquickjs::Function<'js>> {
    let (name, realm, asks) = (Rc::from(&*asks.name), Rc::clone(realm), asks.clone());
    function(ctx, &name, move |ctx, rest| {
        let arguments = arguments(&ctx, &realm, &asks.bound, rest)?;
        realm.ask(&ctx, &asks.name, arguments)
    })
}

/// A function of Rust that takes whatever it is given.
pub(crate) fn function<'js>(
    ctx: &Ctx<'js>,
    name: &Rc<str>,
    body: impl Fn(Ctx<'js>, Vec<rquickjs::Value<'js>>) -> rquickjs::Result<rquickjs::Value<'js>> + 'js,
) -> rquickjs::Result<rquickjs::Function<'js>> {
    let body = move |ctx: Ctx<'js>, rest: Rest<rquickjs::Value<'js>>| body(ctx, rest.0);
    rquickjs::Function::new(ctx.clone(), body)?.with_name(name)
}

fn arguments<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    bound: &[Value],
    rest: Vec<rquickjs::Value<'js>>,
) -> rquickjs::Result<Vec<Value>> {
    let mut arguments = bound.to_vec();
    for value in rest {
        arguments.push(from_script(ctx, realm, value)?);
    }
    Ok(arguments)
}

/// Takes `value` out of the engine.
pub(crate) fn from_script<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    value: rquickjs::Value<'js>,
) -> rquickjs::Result<Value> {
    Reader { ctx, realm, above: Vec::new(), count: 0 }.read(value)
}

struct Reader<'r, 'js> {
    ctx: &'r Ctx<'js>,
    realm: &'r Rc<Realm>,
    /// The objects that hold the one being read.
    above: Vec<rquickjs::Value<'js>>,
    count: usize,
}

impl<'js> Reader<'_, 'js> {
    fn read(&mut self, value: rquickjs::Value<'js>) -> rquickjs::Result<Value> {
        self.count += 1;
        if self.count > COUNT {
            return Err(Exception::throw_range(self.ctx, "the value is too large"));
        }
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

    /// Half a surrogate pair is no character of Rust's.
    fn text(&self, value: rquickjs::Value<'js>) -> rquickjs::Result<String> {
        let Some(text) = value.as_string() else { return Ok(String::new()) };
        if let Ok(text) = text.to_string() {
            return Ok(text);
        }
        let well_formed: rquickjs::Function<'js> = self.realm.tools(self.ctx)?.get("wellFormed")?;
        well_formed.call((value,))
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
        let Some(array) = object.into_array() else { return Ok(Value::Undefined) };
        let mut items = Vec::with_capacity(array.len().min(1024));
        for index in 0..array.len() {
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
            entries.push((self.text(key.into_value())?, self.read(value)?));
        }
        Ok(Value::Map(entries))
    }

    /// What stands for a value that has no counterpart of its own.
    fn replace(&mut self, value: rquickjs::Value<'js>) -> rquickjs::Result<Value> {
        let replace: rquickjs::Function<'js> = self.realm.tools(self.ctx)?.get("replace")?;
        let stands_for: rquickjs::Value<'js> = replace.call((value,))?;
        self.read(stands_for)
    }
}

/// What a handle to `function` needs to know beside its index.
pub(crate) fn describe(function: &rquickjs::Function<'_>) -> (String, usize) {
    let name = function.get::<_, Option<String>>("name").ok().flatten().unwrap_or_default();
    let length = function.get::<_, Option<f64>>("length").ok().flatten().unwrap_or_default();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let length = if length.is_finite() && length > 0.0 { length as usize } else { 0 };
    (name, length)
}

impl Function {
    pub(crate) fn new(runtime: u64, index: u32, function: &rquickjs::Function<'_>) -> Self {
        let (name, length) = describe(function);
        Self { runtime, index, name: name.into(), length }
    }
}
