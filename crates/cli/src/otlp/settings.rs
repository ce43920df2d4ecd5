//! The standard variables of OpenTelemetry exporters.

use std::collections::BTreeMap;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use report::telemetry::{Encoding, Options, Signal};

use crate::error::CliError;

/// Address of a collector on this machine.
const DEFAULT_ADDRESS: &str = "http://localhost:4318";
/// Time limit for delivering a request, including all retries.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

type Environment = BTreeMap<String, String>;

/// Destinations of telemetry.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Settings {
    /// Destination of spans; absent if they are not exported.
    pub(super) traces: Option<Destination>,
    /// Destination of log records; absent if they are not exported.
    pub(super) logs: Option<Destination>,
    /// True if the environment turns telemetry off.
    pub(super) is_disabled: bool,
}

/// Destination of one signal.
#[derive(Clone, PartialEq)]
pub(super) struct Destination {
    pub(super) address: String,
    pub(super) encoding: Encoding,
    pub(super) headers: Vec<(String, String)>,
    pub(super) timeout: Duration,
}

impl std::fmt::Debug for Destination {
    /// Omits the headers, which contain keys.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Destination");
        shown.field("encoding", &self.encoding).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Returns `true` if the environment names a collector and does not turn telemetry off.
pub(super) fn switched_on(environment: &Environment) -> bool {
    let names =
        ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"];
    names.iter().any(|name| environment.contains_key(*name)) && !is_true(environment, "OTEL_SDK_DISABLED")
}

/// Returns the attributes of the resource, and whether to include content.
pub(super) fn options(environment: &Environment) -> Options {
    let mut resource = pairs(environment.get("OTEL_RESOURCE_ATTRIBUTES"));
    if let Some(name) = environment.get("OTEL_SERVICE_NAME") {
        resource.retain(|(key, _)| key != "service.name");
        resource.insert(0, ("service.name".to_owned(), name.clone()));
    }
    let content =
        environment.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT").map(|value| value.trim().to_lowercase());
    let content = content.is_some_and(|content| ["true", "span_only", "span_and_event"].contains(&content.as_str()));
    Options { exporter: None, resource, content }
}

impl Settings {
    /// Reads the variables. `address` takes precedence over the addresses in them.
    pub(super) fn from_environment(environment: &Environment, address: Option<&str>) -> Result<Self, CliError> {
        let traces = Destination::of(environment, Signal::Traces, address)?;
        let logs = Destination::of(environment, Signal::Logs, address)?;
        Ok(Self { traces, logs, is_disabled: is_true(environment, "OTEL_SDK_DISABLED") })
    }
}

impl Destination {
    /// Reads the variables for one signal. `None` if the signal is not exported: its exporter is `none`, or only the
    /// other signal has an address.
    fn of(environment: &Environment, signal: Signal, address: Option<&str>) -> Result<Option<Self>, CliError> {
        let (name, other, path) = match signal {
            Signal::Traces => ("TRACES", "LOGS", "v1/traces"),
            Signal::Logs => ("LOGS", "TRACES", "v1/logs"),
        };
        let own = |key: &str| environment.get(&format!("OTEL_EXPORTER_OTLP_{name}_{key}"));
        let of = |key: &str| own(key).or_else(|| environment.get(&format!("OTEL_EXPORTER_OTLP_{key}")));
        if environment.get(&format!("OTEL_{name}_EXPORTER")).is_some_and(|exporter| exporter.trim() == "none") {
            return Ok(None);
        }
        let base = address.or(environment.get("OTEL_EXPORTER_OTLP_ENDPOINT").map(String::as_str));
        let has_other = environment.contains_key(&format!("OTEL_EXPORTER_OTLP_{other}_ENDPOINT"));
        let address = match (own("ENDPOINT").filter(|_| address.is_none()), base) {
            (Some(own), _) => own.trim().to_owned(),
            (None, None) if has_other => return Ok(None),
            (None, base) => format!("{}/{path}", base.unwrap_or(DEFAULT_ADDRESS).trim().trim_end_matches('/')),
        };
        let encoding = match of("PROTOCOL").map(|protocol| protocol.trim()) {
            None | Some("http/protobuf") => Encoding::Protobuf,
            Some("http/json") => Encoding::Json,
            Some(protocol) => {
                return Err(CliError::usage(format!("OpenTelemetry's protocol `{protocol}` is not supported"))
                    .hint("set OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf or http/json; collectors accept both on port 4318"));
            }
        };
        let timeout =
            of("TIMEOUT").and_then(|ms| ms.trim().parse().ok()).map_or(DEFAULT_TIMEOUT, Duration::from_millis);
        Ok(Some(Self { address, encoding, headers: pairs(of("HEADERS")), timeout }))
    }
}

fn is_true(environment: &Environment, name: &str) -> bool {
    environment.get(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Parses `key=value,key=value`, where values may be percent-encoded. Anything else is ignored.
fn pairs(written: Option<&String>) -> Vec<(String, String)> {
    let decoded = |text: &str| percent_decode_str(text.trim()).decode_utf8_lossy().into_owned();
    let pairs = written.map(String::as_str).unwrap_or_default().split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (decoded(key), decoded(value))).filter(|(key, _)| !key.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn addresses(pairs: &[(&str, &str)], address: Option<&str>) -> [Option<String>; 2] {
        let settings = Settings::from_environment(&environment(pairs), address).unwrap();
        [settings.traces, settings.logs].map(|destination| Some(destination?.address))
    }

    fn both(traces: &str, logs: &str) -> [Option<String>; 2] {
        [Some(traces.to_owned()), Some(logs.to_owned())]
    }

    #[test]
    fn a_signal_has_its_own_address_or_a_path_below_the_common_one() {
        let (base, traces) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        assert_eq!(addresses(&[], None), both("http://localhost:4318/v1/traces", "http://localhost:4318/v1/logs"));
        assert_eq!(addresses(&[(base, "https://a/x/")], None), both("https://a/x/v1/traces", "https://a/x/v1/logs"));
        assert_eq!(
            addresses(&[(base, "http://a"), (traces, "http://b/t")], None),
            both("http://b/t", "http://a/v1/logs")
        );
        let given = addresses(&[(base, "http://a"), (traces, "http://b/t")], Some("http://c"));
        assert_eq!(given, both("http://c/v1/traces", "http://c/v1/logs"), "the command line is stronger");
        assert_eq!(addresses(&[(traces, "http://b/t")], None), [Some("http://b/t".to_owned()), None]);
        let none = [(base, "http://a"), ("OTEL_LOGS_EXPORTER", "none")];
        assert_eq!(addresses(&none, None), [Some("http://a/v1/traces".to_owned()), None]);
    }

    #[test]
    fn variables_for_one_signal_take_precedence_over_common_ones() {
        let settings = Settings::from_environment(
            &environment(&[
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
                ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/protobuf"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=1,nonsense,=2"),
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
                ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "soon"),
            ]),
            None,
        );
        let Settings { traces: Some(traces), logs: Some(logs), .. } = settings.unwrap() else { panic!("both signals") };
        assert_eq!([traces.encoding, logs.encoding], [Encoding::Json, Encoding::Protobuf]);
        assert_eq!([traces.timeout, logs.timeout], [Duration::from_millis(250), DEFAULT_TIMEOUT]);
        assert_eq!(traces.headers, [("api-key".into(), "a b".into()), ("x".into(), "1".into())]);
        assert!(!format!("{traces:?}").contains("api-key"));
        let error =
            Settings::from_environment(&environment(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]), None).unwrap_err();
        assert_eq!(error.to_string(), "OpenTelemetry's protocol `grpc` is not supported");
    }

    #[test]
    fn an_address_turns_the_report_on_unless_telemetry_is_disabled() {
        let is_on = |pairs: &[(&str, &str)]| switched_on(&environment(pairs));
        let address = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://a");
        assert!(is_on(&[address]) && !is_on(&[("OTEL_EXPORTER_OTLP_HEADERS", "a=b")]));
        assert!(!is_on(&[address, ("OTEL_SDK_DISABLED", "TRUE")]));
    }

    #[test]
    fn the_service_name_variable_takes_precedence_over_the_attribute() {
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,deployment.environment.name=ci");
        let options = options(&environment(&[attributes, ("OTEL_SERVICE_NAME", "b")]));
        let expected = [("service.name", "b"), ("deployment.environment.name", "ci")];
        assert_eq!(options.resource, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert!(!options.content);
    }
}
