//! The beginning of what a client sends through a tunnel, and the hosts mentioned there.

use model::Destination;
use rustls::server::Acceptor;

/// First byte of a TLS greeting.
const HANDSHAKE: u8 = 0x16;

/// Maximum number of headers that are examined in a request.
const MOST_HEADERS: usize = 100;

/// Result of examining the first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// More bytes are needed.
    Incomplete,
    /// They mention these hosts. There are none if the protocol is not known or does not mention a host.
    Names(Vec<String>),
    /// They begin like TLS but cannot be read.
    Unreadable,
}

/// Examines a client's first bytes.
pub(super) fn examine(bytes: &[u8]) -> Opening {
    match bytes.first() {
        None => Opening::Incomplete,
        Some(&HANDSHAKE) => tls(bytes),
        Some(first) if first.is_ascii_alphabetic() => http(bytes),
        Some(_) => Opening::Names(Vec::new()),
    }
}

/// Examines a TLS greeting, whose only name is the server's.
fn tls(mut bytes: &[u8]) -> Opening {
    let mut acceptor = Acceptor::default();
    while !bytes.is_empty() {
        if acceptor.read_tls(&mut bytes).is_err() {
            return Opening::Unreadable;
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                return Opening::Names(accepted.client_hello().server_name().into_iter().map(str::to_owned).collect());
            }
            Ok(None) => {}
            Err(_) => return Opening::Unreadable,
        }
    }
    Opening::Incomplete
}

/// Examines a request, which may contain its host in several places.
fn http(bytes: &[u8]) -> Opening {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => Opening::Incomplete,
        // Another protocol.
        Err(_) => Opening::Names(Vec::new()),
        Ok(httparse::Status::Complete(_)) => {
            let whole = request.path.and_then(Destination::of_url).map(|destination| destination.host);
            let hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
            let hosts = hosts.map(|header| host_of(&String::from_utf8_lossy(header.value)));
            Opening::Names(hosts.chain(whole).collect())
        }
    }
}

/// Returns the host of `HOST` or `HOST:PORT`.
fn host_of(header: &str) -> String {
    let header = header.trim();
    let is_bare = header.ends_with(']') || !header.contains(':');
    let host = if is_bare { header } else { header.rsplit_once(':').map_or(header, |(host, _)| host) };
    host.to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::client::{ClientConfig, ClientConnection};

    use super::*;

    /// Returns the greeting of a TLS client that requests `host`.
    fn greeting(host: &'static str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let mut client = ClientConnection::new(Arc::new(config), host.try_into().unwrap()).unwrap();
        let mut sent = Vec::new();
        client.write_tls(&mut sent).unwrap();
        sent
    }

    #[test]
    fn the_name_in_a_tls_greeting_is_found_once_it_is_complete() {
        let sent = greeting("other.example");
        assert_eq!(examine(&sent), Opening::Names(vec!["other.example".to_owned()]));
        assert_eq!(examine(&sent[..sent.len() - 1]), Opening::Incomplete);
        assert_eq!(examine(&sent[..3]), Opening::Incomplete);
        assert_eq!(examine(&greeting("127.0.0.1")), Opening::Names(Vec::new()));
        assert_eq!(examine(&[HANDSHAKE, 3, 1, 0, 4, 9, 9, 9, 9]), Opening::Unreadable);
    }

    #[test]
    fn all_hosts_of_a_plain_request_are_found() {
        let sent = b"GET http://a.example/ HTTP/1.1\r\nHost: b.example:80\r\nhost: [::1]\r\n\r\n";
        let names = ["b.example", "[::1]", "a.example"].map(str::to_owned).into();
        assert_eq!(examine(sent), Opening::Names(names));
        assert_eq!(examine(b"GET / HTTP/1.1\r\nHos"), Opening::Incomplete);
        assert_eq!(examine(b"SSH-2.0-x\r\n"), Opening::Names(Vec::new()));
        assert_eq!(examine(&[0, 1]), Opening::Names(Vec::new()));
    }
}
