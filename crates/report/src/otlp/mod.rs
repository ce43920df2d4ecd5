//! OpenTelemetry: a run as a trace, and the result of each assertion as a log record.
//!
//! This module creates the records; a caller may send them through an [`Exporter`]. Without one, they are written as
//! JSON, one request per line, like the output of OpenTelemetry's file exporter.

mod conventions;
mod identifiers;
mod trial;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use jiff::Timestamp;
use model::{Envelope, Event, Gate, Outcome, RunInfo, Summary};

use self::conventions as names;
use self::identifiers::{TraceContext, span_id};
use self::trial::{RunContext, SAMPLED, TrialSpans};
use crate::telemetry::message::{Attributes, LogRecord, Resource, Scope, Span, Status, nanoseconds};
use crate::telemetry::{Encoding, Exporter, Options, Signal, TRACEPARENT, Telemetry};
use crate::{Reporter, ReporterOptions};

/// Exporter that writes one request per line, as JSON.
struct JsonLines(Box<dyn Write + Send>);

impl Exporter for JsonLines {
    fn export(&mut self, telemetry: Telemetry) -> io::Result<()> {
        for signal in [Signal::Traces, Signal::Logs] {
            if telemetry.count(signal) > 0 {
                let mut line = telemetry.encode(signal, Encoding::Json);
                line.push(b'\n');
                self.0.write_all(&line)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

struct Otlp {
    exporter: Box<dyn Exporter>,
    resource: Vec<(String, String)>,
    failures_only: bool,
    /// The run, once it has started.
    run: Option<Run>,
    context: RunContext,
    trials: HashMap<Arc<str>, TrialSpans>,
}

/// Run in progress.
struct Run {
    info: Box<RunInfo>,
    trace: TraceContext,
    last: Timestamp,
    summary: Option<Summary>,
    signal: Option<String>,
}

pub(crate) fn open(options: ReporterOptions) -> Box<dyn Reporter> {
    let Options { exporter, resource, content } = options.otlp;
    Box::new(Otlp {
        exporter: exporter.unwrap_or_else(|| Box::new(JsonLines(options.out))),
        resource,
        failures_only: options.failures_only,
        run: None,
        context: RunContext { content, ..RunContext::default() },
        trials: HashMap::new(),
    })
}

impl Reporter for Otlp {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        if let Event::RunStarted(info) = &envelope.event {
            self.start(envelope, info);
        }
        let Some(run) = &mut self.run else { return Ok(()) };
        run.last = envelope.at;
        match (&envelope.event, &envelope.trial) {
            (Event::RunFinished { summary, signal, .. }, _) => {
                (run.summary, run.signal) = (Some(summary.clone()), signal.clone());
            }
            (Event::TrialFinished(record), _) => {
                let trial = self.trials.remove(&record.id);
                if self.failures_only && record.outcome == Outcome::Passed {
                    return Ok(());
                }
                let trial = trial.unwrap_or_else(|| TrialSpans::new(&self.context, &record.id, record.started_at));
                let (spans, logs) = trial.finish(record, envelope.at);
                self.export(spans, logs)?;
            }
            (_, Some(trial)) => {
                let new = || TrialSpans::new(&self.context, trial, envelope.at);
                self.trials.entry(Arc::clone(trial)).or_insert_with(new).add(envelope);
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(run) = &self.run {
            let span = run.span(&self.context);
            self.export(vec![span], Vec::new())?;
        }
        self.exporter.finish()
    }
}

impl Otlp {
    fn start(&mut self, envelope: &Envelope, info: &RunInfo) {
        let text = |name: &str| info.settings.get(name).and_then(serde_json::Value::as_str);
        let trace = TraceContext::new(&info.id, text(TRACEPARENT));
        self.context = RunContext {
            run: info.id.as_str().into(),
            trace: trace.trace.clone(),
            span: span_id(&info.id, "", 0),
            judge: text("judge").filter(|judge| !judge.is_empty()).map(str::to_owned),
            content: self.context.content,
        };
        let info = Box::new(info.clone());
        self.run = Some(Run { info, trace, last: envelope.at, summary: None, signal: None });
    }

    fn export(&mut self, spans: Vec<Span>, logs: Vec<LogRecord>) -> io::Result<()> {
        let version = self.run.as_ref().map_or("", |run| &run.info.trialrun_version);
        let mut resource = Attributes::default();
        let own = [(names::SERVICE_NAME, "trialrun"), ("service.version", version)];
        for (key, value) in own.into_iter().filter(|(key, _)| self.resource.iter().all(|(other, _)| key != other)) {
            resource.put(key, value);
        }
        self.resource.iter().for_each(|(key, value)| resource.put(key, value.as_str()));
        let mut attributes = Attributes::default();
        attributes.put(names::CONVENTIONS, names::GEN_AI_VERSION);
        let scope = Scope { name: "trialrun".into(), version: version.to_owned(), attributes: attributes.0 };
        self.exporter.export(Telemetry { resource: Resource { attributes: resource.0 }, scope, spans, logs })
    }
}

impl Run {
    fn span(&self, context: &RunContext) -> Span {
        let mut attributes = Attributes::default();
        attributes.put(names::RUN_ID, &*self.info.id);
        attributes.put_some(names::RUN_LABEL, self.info.label.as_deref());
        attributes.put_some(names::RUN_SIGNAL, self.signal.as_deref());
        let status = match &self.summary {
            None => "aborted",
            Some(_) if self.signal.is_some() => "aborted",
            Some(summary) if summary.exit_code() == 1 || summary.by_outcome.broken > summary.decisions.open_trials => {
                "failure"
            }
            Some(summary) if Gate::from_settings(&self.info.settings).is_missed(summary) => "failure",
            Some(_) => "success",
        };
        attributes.put(names::SUITE_STATUS, status);
        if let Some(summary) = &self.summary {
            for outcome in Outcome::ALL {
                let name = format!("{}.{}", names::RUN_TRIALS, outcome.name());
                attributes.put(&name, summary.by_outcome[outcome] as u64);
            }
            attributes.put_some(names::COST, summary.cost_usd);
        }
        let error = (status == "failure").then(|| Status { message: String::new(), code: 2 });
        let started = self.info.started_at.min(self.last);
        Span {
            trace_id: context.trace.clone(),
            span_id: context.span.clone(),
            parent_span_id: self.trace.parent.clone(),
            name: "trialrun run".into(),
            kind: 1,
            start_time_unix_nano: nanoseconds(started),
            end_time_unix_nano: nanoseconds(self.last),
            attributes: attributes.0,
            status: error,
            flags: SAMPLED,
        }
    }
}
