//! Settings in their written form, as on the command line.

use model::{CassetteMode, GatewayMode, JudgeCache, JudgeSample, NetworkPolicy, RemoteMode, Trials};
use runner::RetryOn;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::shard::ShardArg;

/// A value with a written form.
pub(crate) trait Written: Sized {
    /// Returns the written form.
    fn text(&self) -> String;

    /// Parses it.
    ///
    /// # Errors
    /// Returns a description of the valid forms.
    fn parse(text: &str) -> Result<Self, String>;
}

macro_rules! written {
    ($($type:ty: $text:expr;)*) => {
        $(impl Written for $type {
            fn text(&self) -> String {
                let text: fn(&$type) -> String = $text;
                text(self)
            }

            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error: model::InvalidText| error.to_string())
            }
        })*
    };
}

written! {
    CassetteMode: |mode| mode.name().to_owned();
    GatewayMode: |mode| mode.name().to_owned();
    JudgeCache: |cache| cache.name().to_owned();
    JudgeSample: ToString::to_string;
    NetworkPolicy: ToString::to_string;
    RemoteMode: ToString::to_string;
    Trials: ToString::to_string;
}

impl Written for RetryOn {
    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| format!("`{text}` is not `exit`, `timeout`, `exit,timeout` or `none`"))
    }
}

impl Written for ShardArg {
    fn text(&self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

pub(crate) fn serialize<T: Written, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(Written::text).serialize(serializer)
}

pub(crate) fn deserialize<'de, T: Written, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| T::parse(&text).map_err(D::Error::custom)).transpose()
}

/// The same for a value that is always there.
pub(crate) mod value {
    use super::{Deserialize, Deserializer, Error, Serialize, Serializer, Written};

    pub(crate) fn serialize<T: Written, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.text().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: Written, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
