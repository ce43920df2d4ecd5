//! `egress_only`: the agent tried to reach only certain hosts.

use model::{Destination, EgressAttempt, HostPattern, decode};

use super::prelude::*;
use crate::evidence::egress;

pub(crate) const ASSERTION: Assertion = Assertion::written("egress_only", parse)
    .summary("The agent tried to reach only these hosts, and that of its model.")
    .fields(&[Field::required(
        "hosts",
        "list of strings",
        "Hosts: `example.com`, or `*.example.com` for all hosts below it, either with `:PORT`.",
    )])
    .parameters(&[Parameter::Value("hosts")])
    .pass(
        || json!({"id": "only-packages", "type": "egress_only", "hosts": ["*.packages.example:443"]}),
        || EvidenceBuilder::new().network("allow=*.packages.example").allowed("eu.packages.example", 443),
    )
    .fail(
        || json!({"id": "only-packages", "type": "egress_only", "hosts": ["packages.example"]}),
        || {
            EvidenceBuilder::new()
                .network("allow=packages.example")
                .allowed("packages.example", 443)
                .refused("paste.example.com", 443)
        },
    );

#[derive(Debug)]
struct EgressOnly {
    hosts: Vec<HostPattern>,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let node = reading.fields.require("hosts", reading.problems)?;
    if let Some(Err(reason)) = node.as_str().map(str::parse::<HostPattern>) {
        reading.problems.push(node.error(format!("{reason}, in a list: `[…]`")));
        return None;
    }
    let items = decode::list(node, "`hosts`", reading.problems)?;
    let hosts = items.iter().filter_map(|item| {
        let written = decode::text(item, "an item of `hosts`", reading.problems)?;
        let parsed = written.parse::<HostPattern>();
        parsed.map_err(|reason| reading.problems.push(item.error(reason.to_string()))).ok()
    });
    Some(Arc::new(EgressOnly { hosts: hosts.collect() }))
}

impl EgressOnly {
    fn includes(&self, attempt: &EgressAttempt) -> bool {
        self.hosts.iter().any(|pattern| match attempt.port {
            Some(port) => pattern.includes(&Destination { host: attempt.host.clone(), port }),
            None => pattern.includes_host(&attempt.host),
        })
    }
}

impl Matcher for EgressOnly {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let Some(attempts) = egress::attempts(evidence) else { return Ok(egress::unknown(evidence)) };
        let count = attempts.len();
        let mut strange = attempts.into_iter().filter(|attempt| !self.includes(attempt));
        let Some(first) = strange.next() else {
            let seen = match count {
                0 => "no name was looked up, and the proxy was not used".to_owned(),
                count => {
                    format!("{} by name or through the proxy, to hosts in the list", format::count(count, "attempt"))
                }
            };
            return Ok(Verdict::met(format!("{seen}; {}", egress::UNSEEN)));
        };
        let reason = format!("the agent tried to reach `{}`", first.place());
        let hosts: Vec<String> = self.hosts.iter().map(HostPattern::to_string).collect();
        let verdict = Verdict::unmet(reason, format!("only {}", format::names(&hosts)), first.describe());
        Ok(verdict.evidence(format::few(strange.map(EgressAttempt::describe).collect(), 9)))
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use super::*;
    use crate::check::tests::judged;

    #[test]
    fn without_a_record_of_attempts_it_is_undecided() {
        let wanted = json!({"id": "a", "type": "egress_only", "hosts": ["example.com"]});
        assert_eq!(judged(&wanted, &EvidenceBuilder::new().evidence()).status, Status::Undecided);
    }

    #[test]
    fn every_attempt_outside_of_the_list_is_shown() {
        let wanted = json!({"id": "a", "type": "egress_only", "hosts": ["a.example:443"]});
        let evidence = EvidenceBuilder::new().network("none").refused("a.example", 443).refused("a.example", 80);
        let finding = judged(&wanted, &evidence.refused("b.example", 443).evidence());
        assert_eq!(finding.status, Status::Unmet);
        assert_eq!(finding.reason, "the agent tried to reach `a.example:80`");
        assert_eq!(finding.expected.as_deref(), Some("only `a.example:443`"));
        assert_eq!(finding.evidence.len(), 1, "{:?}", finding.evidence);
    }
}
