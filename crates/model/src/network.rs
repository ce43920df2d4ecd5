//! Network policies for trials, and the hosts that agents try to reach.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::{InvalidText, nearest};

/// Policies that consist of a name alone.
const NAMED: [(&str, NetworkPolicy); 3] =
    [("none", NetworkPolicy::None), ("model-only", NetworkPolicy::ModelOnly), ("open", NetworkPolicy::Open)];

/// Beginning of a policy that lists hosts, on the command line.
const ALLOW: &str = "allow=";

/// Hosts that the processes of a trial may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// Everything that the machine can reach.
    Open,
    /// None.
    None,
    /// Only the host of the configured model.
    #[default]
    ModelOnly,
    /// The host of the configured model, and these hosts.
    Allow(Vec<HostPattern>),
}

impl NetworkPolicy {
    /// Names of the policies that consist of a name alone.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().map(|(name, _)| *name)
    }

    /// Returns the policy with that name.
    pub fn named(name: &str) -> Option<Self> {
        NAMED.iter().find(|(known, _)| *known == name).map(|(_, policy)| policy.clone())
    }

    /// Returns `true` if processes use the machine's network.
    pub fn is_open(&self) -> bool {
        *self == Self::Open
    }
}

impl Display for NetworkPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow(hosts) => {
                let hosts: Vec<String> = hosts.iter().map(HostPattern::to_string).collect();
                write!(f, "{ALLOW}{}", hosts.join(","))
            }
            named => {
                let name = NAMED.iter().find(|(_, policy)| policy == named).map_or("", |(name, _)| name);
                f.write_str(name)
            }
        }
    }
}

impl FromStr for NetworkPolicy {
    type Err = InvalidText;

    /// Parses a policy as written on the command line: a name, or `allow=HOST,HOST`.
    fn from_str(written: &str) -> Result<Self, InvalidText> {
        if let Some(hosts) = written.strip_prefix(ALLOW) {
            return hosts
                .split(',')
                .map(|host| HostPattern::of_policy(host.trim()))
                .collect::<Result<_, _>>()
                .map(Self::Allow);
        }
        Self::named(written).ok_or_else(|| {
            let near = nearest(written, Self::names()).map(|name| format!(" (did you mean `{name}`?)"));
            let reason = format!(
                "`{written}` is not a network policy{}; write `none`, `model-only`, `open` or `{ALLOW}HOST,HOST`",
                near.unwrap_or_default()
            );
            InvalidText::new(written, reason)
        })
    }
}

/// A host and a port, in the only spelling that is used for comparing and connecting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    /// Name in lower case without a final dot, or address; an IPv6 address is in brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Destination {
    /// Returns the destination with the usual spelling of the host, or `None` if the host is invalid.
    pub fn new(host: &str, port: u16) -> Option<Self> {
        Some(Self { host: canonical(host)?, port })
    }

    /// Returns the destination of an address such as `https://api.example.com/v1`.
    pub fn of_url(address: &str) -> Option<Self> {
        let url = Url::parse(address).ok()?;
        Self::new(url.host_str()?, url.port_or_known_default()?)
    }

    /// Returns `true` if it is this machine itself.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.ends_with(".localhost") || self.ip().is_some_and(|ip| ip.is_loopback())
    }

    /// Returns the IP address, unless the host is a name.
    pub fn ip(&self) -> Option<std::net::IpAddr> {
        self.host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }
}

impl Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Returns the usual spelling of a host: `EXAMPLE.com.` and `2130706433` are `example.com` and `127.0.0.1`.
fn canonical(host: &str) -> Option<String> {
    let without_dot = host.strip_suffix('.').unwrap_or(host);
    match Host::parse(without_dot).ok()? {
        Host::Domain(name) if name.ends_with('.') || name.is_empty() => None,
        Host::Domain(name) => Some(name),
        Host::Ipv4(address) => Some(address.to_string()),
        // An IPv4 address that is written as an IPv6 address leads to the same host.
        Host::Ipv6(address) => Some(match address.to_ipv4_mapped() {
            Some(address) => address.to_string(),
            None => format!("[{address}]"),
        }),
    }
}

/// Hosts that a policy or an assertion lists: `example.com` or `*.example.com`, optionally with `:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: String,
    /// True if it matches all hosts below `host`, but not `host` itself.
    below: bool,
    port: Option<u16>,
}

impl HostPattern {
    /// Parses a pattern in a policy. Each port on the machine's own loopback is allowed separately.
    ///
    /// # Errors
    /// Returns the reason why it is not valid.
    pub fn of_policy(written: &str) -> Result<Self, InvalidText> {
        let pattern: Self = written.parse()?;
        let destination = Destination { host: pattern.host.clone(), port: 0 };
        if destination.is_loopback() && (pattern.port.is_none() || pattern.below) {
            let example = format!("{}:8080", pattern.host);
            let reason = format!("`{written}` is this machine, so a port must be given, such as `{example}`");
            return Err(InvalidText::new(written, reason));
        }
        Ok(pattern)
    }

    /// Returns `true` if the pattern matches the destination.
    pub fn includes(&self, destination: &Destination) -> bool {
        self.includes_host(&destination.host) && self.port.is_none_or(|port| port == destination.port)
    }

    /// Returns `true` if the pattern matches the host at any port. The host has the spelling of a [`Destination`].
    pub fn includes_host(&self, host: &str) -> bool {
        match self.below {
            true => host.strip_suffix(&self.host).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            false => host == self.host,
        }
    }

    /// Returns the destination if there is only one.
    pub fn destination(&self) -> Option<Destination> {
        let port = self.port.filter(|_| !self.below)?;
        Some(Destination { host: self.host.clone(), port })
    }
}

impl Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.below { "*." } else { "" })?;
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl FromStr for HostPattern {
    type Err = InvalidText;

    fn from_str(written: &str) -> Result<Self, InvalidText> {
        let wrong = |why: &str| {
            let forms = "`example.com`, `*.example.com` or `example.com:443`";
            InvalidText::new(written, format!("`{written}` {why}; write {forms}"))
        };
        if written.contains(['/', '?', '#']) {
            let what = "is an address, not a host";
            let rest = written.split_once("//").map_or(written, |(_, rest)| rest);
            let (host, path) = rest.split_once(['/', '?', '#']).unwrap_or((rest, ""));
            // `10.0.0.0/8` is a range.
            let host = host.parse::<Self>().ok().filter(|_| path.parse::<u8>().is_err());
            // Each port of this machine is named.
            let of_this_machine = Destination::of_url(written).filter(Destination::is_loopback);
            let right = of_this_machine.map(|place| place.to_string()).or(host.map(|host| host.to_string()));
            return Err(match right {
                Some(right) => InvalidText::new(written, format!("`{written}` {what}; write `{right}`")),
                None => wrong(what),
            });
        }
        let (below, rest) = written.strip_prefix("*.").map_or((false, written), |rest| (true, rest));
        if rest.contains('*') {
            return Err(wrong("may have `*` only at its start, before `.` and the name of a host"));
        }
        let is_bare = rest.ends_with(']') || !rest.contains(':');
        let (host, port) = match rest.rsplit_once(':').filter(|_| !is_bare) {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        };
        let port =
            port.map(|port| port.parse().ok().filter(|port| *port > 0).ok_or_else(|| wrong("has no valid port")));
        let canonical = canonical(host).ok_or_else(|| wrong("is not a valid host"))?;
        let pattern = Self { host: canonical, below, port: port.transpose()? };
        let is_address = pattern.host.starts_with('[') || pattern.host.parse::<std::net::Ipv4Addr>().is_ok();
        if below && is_address {
            return Err(wrong("has no subdomains"));
        }
        Ok(pattern)
    }
}

/// One host that a trial's processes tried to reach, and the verdict on the attempt. Later attempts with the same
/// host, port, way and verdict are not listed again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EgressAttempt {
    /// Name or address, without userinfo.
    pub host: String,
    /// Port; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Verdict of the policy.
    pub verdict: EgressVerdict,
    /// How the attempt was made.
    pub way: EgressWay,
    /// True if it is the host of the configured model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_model: bool,
    /// True if it was made by an assertion's command rather than by the agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_command: bool,
    /// Reason why it was refused.
    #[serde(rename = "because", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl EgressAttempt {
    /// Returns `true` if the attempt results from the agent's decisions.
    pub fn counts(&self) -> bool {
        !self.is_model && !self.by_command
    }

    /// Returns the host with its port.
    pub fn place(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }

    /// Describes the attempt in one line.
    pub fn describe(&self) -> String {
        let mut text = format!("{} {}", self.verdict.name(), self.place());
        for note in [
            (self.way == EgressWay::Dns).then_some("DNS lookup"),
            (self.way == EgressWay::Direct).then_some("without the proxy"),
            self.is_model.then_some("the model"),
            self.by_command.then_some("by an assertion's command"),
            self.reason.as_deref(),
        ]
        .into_iter()
        .flatten()
        {
            text.push_str(&format!(", {note}"));
        }
        text
    }
}

/// Verdict of a network policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressVerdict {
    /// The connection was allowed.
    Allowed,
    /// The connection was refused.
    Refused,
}

impl EgressVerdict {
    /// Returns the name in records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
        }
    }
}

/// How a process tried to reach a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressWay {
    /// A request to the proxy.
    Proxy,
    /// A connection to a forwarded port on the machine's loopback.
    Forward,
    /// A name inside the connection that differs from the requested host.
    Inside,
    /// A DNS lookup.
    Dns,
    /// A connection without the proxy.
    Direct,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(written: &str) -> HostPattern {
        written.parse().unwrap()
    }

    #[test]
    fn every_spelling_of_a_host_is_the_same_destination() {
        for (written, host) in [
            ("EXAMPLE.com", Some("example.com")),
            ("example.com.", Some("example.com")),
            ("example.com..", None),
            ("", None),
            ("2130706433", Some("127.0.0.1")),
            ("0x7f.1", Some("127.0.0.1")),
            ("127.1", Some("127.0.0.1")),
            ("[::FFFF:127.0.0.1]", Some("127.0.0.1")),
            ("[::1]", Some("[::1]")),
            ("%65xample.com", Some("example.com")),
            ("bücher.example", Some("xn--bcher-kva.example")),
            ("a b", None),
            ("user@example.com", None),
        ] {
            assert_eq!(
                Destination::new(written, 1).map(|destination| destination.host),
                host.map(str::to_owned),
                "{written}"
            );
        }
        let destination = Destination::of_url("https://API.example.com/v1").unwrap();
        assert_eq!(destination.to_string(), "api.example.com:443");
        assert!(Destination::of_url("http://[::1]:80/").unwrap().is_loopback());
    }

    #[test]
    fn a_pattern_includes_its_host_or_the_hosts_below_it() {
        let includes = |written: &str, host: &str| {
            let (host, port) = host.split_once(':').unwrap();
            pattern(written).includes(&Destination::new(host, port.parse().unwrap()).unwrap())
        };
        assert!(includes("Example.com", "example.com:443") && includes("example.com:443", "example.com.:443"));
        assert!(!includes("example.com", "www.example.com:443") && !includes("example.com:443", "example.com:80"));
        assert!(includes("*.example.com", "a.b.example.com:1") && !includes("*.example.com", "example.com:1"));
        assert!(!includes("*.example.com", "notexample.com:1"));
        assert!(HostPattern::of_policy("localhost").is_err() && HostPattern::of_policy("localhost:80").is_ok());
        assert_eq!(pattern("[::1]:80").to_string(), "[::1]:80");
        assert_eq!(pattern("*.example.com:80").to_string(), "*.example.com:80");
    }

    #[test]
    fn an_invalid_pattern_is_rejected_with_the_reason() {
        for (written, reason) in [
            ("https://example.com", "is an address, not a host; write `example.com`"),
            ("example.com/path", "is an address, not a host; write `example.com`"),
            ("https://*.example.com:8443/v1", "write `*.example.com:8443`"),
            ("http://localhost/", "write `localhost:80`"),
            ("10.0.0.0/8", "is an address, not a host; write `example.com`, "),
            ("ex*mple.com", "may have `*` only at its start"),
            ("*", "may have `*` only at its start"),
            ("example.com:0", "has no valid port"),
            ("example.com:https", "has no valid port"),
            ("", "is not a valid host"),
            ("*.127.0.0.1", "has no subdomains"),
        ] {
            let error = written.parse::<HostPattern>().unwrap_err();
            assert!(error.to_string().contains(reason), "{written}: {error}");
        }
    }

    #[test]
    fn a_policy_has_one_spelling_on_the_command_line() {
        for written in ["none", "model-only", "open", "allow=example.com,*.example.org:443"] {
            assert_eq!(written.parse::<NetworkPolicy>().unwrap().to_string(), written);
        }
        let error = "model_only".parse::<NetworkPolicy>().unwrap_err();
        assert!(error.to_string().contains("did you mean `model-only`?"), "{error}");
    }
}
