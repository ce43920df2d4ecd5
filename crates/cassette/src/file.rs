//! The cassette file: compressed JSON lines. Parts that several requests share, such as tools and earlier messages, are
//! written once. The same recordings always produce the same bytes.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use mask::Mask;
use model::foreign_json;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content_hash::content_hash;
use crate::exchange::{Answer, Exchange, Recording, RecordingInfo, Sender};
use crate::stream;

/// Version of the file format.
const VERSION: u32 = 1;
/// Compression level.
const LEVEL: i32 = 9;
/// Maximum size in memory, both of the decompressed file and of the requests that are rebuilt from its parts, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Size of a JSON value in memory in addition to its text, in bytes.
const VALUE_BYTES: u64 = size_of::<Value>() as u64;
/// Maximum size of the window of the compression, as a power of two. [`LEVEL`] needs less.
const MAX_WINDOW_LOG: u32 = 24;
const TOO_LARGE: &str = "it is too large";
/// Minimum size of a text that is stored as a separate part, in bytes.
const MIN_PART_BYTES: usize = 256;

/// Recordings of one case in one arm, one for each repetition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cassette {
    /// Recordings, sorted by repetition.
    pub recordings: Vec<Arc<Recording>>,
}

/// A cassette that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// It cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is damaged.
    #[error("line {line} is not valid: {reason}")]
    Damaged {
        /// Number of the line after decompression, from 1.
        line: usize,
        /// Details.
        reason: String,
    },
    /// It was written by a newer version of trialrun.
    #[error("it has version {0} of the format; this version of trialrun reads version {VERSION}")]
    Version(u32),
    /// It would contain a secret.
    #[error("{0} contains a secret")]
    Secret(String),
    /// The traffic cannot be recorded, for the given reason.
    #[error("{0}")]
    Unrecordable(String),
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Cassette(u32),
    Part(String, Value),
    Recording(RecordingInfo),
    Exchange(Box<WrittenExchange>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenExchange {
    sender: Sender,
    path: String,
    /// Short fields of the request, or the whole request if it is not an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    request: Value,
    /// Lists in the request, as part ids.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    lists: Map<String, Value>,
    /// Long values in the request, as part ids.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    long: Map<String, Value>,
    answer: Answer,
}

impl Cassette {
    /// Reads the cassette in `file`. If the file does not exist, the cassette is empty.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a cassette of this version.
    pub fn read(file: &Path) -> Result<Self, CassetteError> {
        match files::open(file) {
            Ok(open) => Self::from_reader(open),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a cassette.
    ///
    /// # Errors
    /// Returns an error if the cassette is damaged or has another format version.
    pub fn from_reader(reader: impl Read) -> Result<Self, CassetteError> {
        let mut decoder = zstd::Decoder::new(reader)?;
        decoder.window_log_max(MAX_WINDOW_LOG)?;
        let lines = BufReader::new(decoder.take(MAX_BYTES)).lines();
        let (mut parts, mut recordings, mut held, mut expanded) = (HashMap::new(), Vec::<Recording>::new(), 0, 0);
        for (at, line) in lines.enumerate() {
            let damaged = |reason: String| CassetteError::Damaged { line: at + 1, reason };
            let line = line.map_err(|error| damaged(error.to_string()))?;
            let size = line.len() as u64 + VALUE_BYTES * foreign_json::count_values(&line) as u64;
            held += size;
            if held > MAX_BYTES {
                return Err(damaged(TOO_LARGE.to_owned()));
            }
            let line: Line = serde_json::from_str(&line).map_err(|error| damaged(error.to_string()))?;
            match line {
                Line::Cassette(VERSION) if at == 0 => {}
                Line::Cassette(version) if version != VERSION => return Err(CassetteError::Version(version)),
                Line::Cassette(_) => return Err(damaged("unexpected second header".to_owned())),
                _ if at == 0 => return Err(damaged("it is not a cassette".to_owned())),
                Line::Part(id, value) => {
                    parts.insert(id, (value, size));
                }
                Line::Recording(about) => recordings.push(Recording { about, exchanges: Vec::new() }),
                Line::Exchange(written) => {
                    let exchange = written.read(&parts, &mut expanded).map_err(damaged)?;
                    let Some(recording) = recordings.last_mut() else {
                        return Err(damaged("an exchange appears before the first recording".to_owned()));
                    };
                    recording.exchanges.push(exchange);
                }
            }
        }
        Ok(Self { recordings: recordings.into_iter().map(Arc::new).collect() })
    }

    /// Returns the recording of a repetition.
    pub fn recording(&self, repetition: u64) -> Option<&Arc<Recording>> {
        self.recordings.iter().find(|recording| recording.about.repetition == repetition)
    }

    /// Adds a recording, and replaces the existing one for the same repetition.
    pub fn put(&mut self, recording: Recording) {
        self.recordings.retain(|known| known.about.repetition != recording.about.repetition);
        self.recordings.push(Arc::new(recording));
        self.recordings.sort_by_key(|recording| recording.about.repetition);
    }

    /// Writes the cassette to `file`. The write is atomic: other programs see either the old file or the new one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or if the cassette would contain a secret that `mask` hides.
    pub fn write(&self, file: &Path, mask: &Mask) -> Result<(), CassetteError> {
        self.check_secrets(mask)?;
        let directory = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        // Cassettes are shared, so they get the usual permissions, which the umask restricts.
        let readable = fs::Permissions::from_mode(0o666);
        let mut draft = tempfile::Builder::new().permissions(readable).tempfile_in(directory)?;
        let mut out = zstd::Encoder::new(&mut draft, LEVEL)?;
        // Readers compare it, so a changed byte is an error instead of another answer.
        out.include_checksum(true)?;
        self.write_lines(&mut out)?;
        out.finish()?;
        draft.as_file().sync_all()?;
        draft.persist(file).map_err(|error| error.error)?;
        Ok(())
    }

    fn write_lines(&self, out: &mut impl Write) -> io::Result<()> {
        let mut written = HashSet::new();
        put_line(out, &Line::Cassette(VERSION))?;
        for recording in &self.recordings {
            put_line(out, &Line::Recording(recording.about.clone()))?;
            for exchange in &recording.exchanges {
                let exchange = WrittenExchange::of(exchange, &mut |value| {
                    let id = content_hash(value);
                    if written.insert(id.clone()) {
                        put_line(out, &Line::Part(id.clone(), value.clone()))?;
                    }
                    Ok(id)
                })?;
                put_line(out, &Line::Exchange(Box::new(exchange)))?;
            }
        }
        Ok(())
    }

    /// Reports the first text that `mask` would change. Streamed texts are also checked after they are joined, because
    /// a secret may be spread over several events.
    fn check_secrets(&self, mask: &Mask) -> Result<(), CassetteError> {
        self.recordings.iter().try_for_each(|recording| recording.check_secrets(mask))
    }
}

impl Recording {
    /// Reports the first text that `mask` would change.
    pub(crate) fn check_secrets(&self, mask: &Mask) -> Result<(), CassetteError> {
        let has_secret = |text: &str| mask.text(text) != text;
        for (at, exchange) in self.exchanges.iter().enumerate() {
            let place = || format!("request {} ({})", at + 1, exchange.sender.name());
            if has_secret(&exchange.answer.content_type)
                || has_secret(&exchange.path)
                || has_secret(&exchange.request.to_string())
            {
                return Err(CassetteError::Secret(place()));
            }
            let is_event_stream = exchange.answer.content_type.starts_with("text/event-stream");
            if stream::texts(&exchange.answer.chunks, is_event_stream).iter().any(|text| has_secret(text)) {
                return Err(CassetteError::Secret(format!("the answer to {}", place())));
            }
        }
        Ok(())
    }
}

fn put_line(out: &mut impl Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

impl WrittenExchange {
    /// Splits a request into parts, and passes each part to `put`, which returns its id.
    fn of(exchange: &Exchange, put: &mut dyn FnMut(&Value) -> io::Result<String>) -> io::Result<Self> {
        let mut written = Self {
            sender: exchange.sender,
            path: exchange.path.clone(),
            request: Value::Null,
            lists: Map::new(),
            long: Map::new(),
            answer: exchange.answer.clone(),
        };
        let Value::Object(fields) = &exchange.request else {
            return Ok(Self { request: exchange.request.clone(), ..written });
        };
        let mut short = Map::new();
        // Reading may return the fields in another order, so they are sorted to keep the file the same.
        let mut fields: Vec<_> = fields.iter().collect();
        fields.sort_by_key(|(key, _)| *key);
        for (key, field) in fields {
            match field {
                Value::Array(items) => {
                    let ids = items.iter().map(|item| Ok(put(item)?.into())).collect::<io::Result<_>>()?;
                    written.lists.insert(key.clone(), Value::Array(ids));
                }
                Value::String(text) if text.len() > MIN_PART_BYTES => {
                    written.long.insert(key.clone(), put(field)?.into());
                }
                Value::Object(_) => {
                    written.long.insert(key.clone(), put(field)?.into());
                }
                _ => {
                    short.insert(key.clone(), field.clone());
                }
            }
        }
        Ok(Self { request: Value::Object(short), ..written })
    }

    /// Rebuilds the exchange, and adds the size of its parts to `expanded`.
    ///
    /// # Errors
    /// Returns the reason if a part is missing, or if the parts exceed the maximum size.
    fn read(self, parts: &HashMap<String, (Value, u64)>, expanded: &mut u64) -> Result<Exchange, String> {
        let mut part = |id: &Value| {
            let id = id.as_str().unwrap_or_default();
            let (value, size) = parts.get(id).ok_or_else(|| format!("the part `{id}` is missing"))?;
            *expanded += size;
            if *expanded > MAX_BYTES { Err(TOO_LARGE.to_owned()) } else { Ok(value.clone()) }
        };
        let mut request = self.request;
        if let Value::Object(fields) = &mut request {
            for (key, ids) in &self.lists {
                let items = ids.as_array().into_iter().flatten().map(&mut part).collect::<Result<_, _>>()?;
                fields.insert(key.clone(), Value::Array(items));
            }
            for (key, id) in &self.long {
                fields.insert(key.clone(), part(id)?);
            }
        }
        Ok(Exchange { sender: self.sender, path: self.path, request, answer: self.answer })
    }
}
