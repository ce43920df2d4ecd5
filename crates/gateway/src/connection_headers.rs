//! Headers that concern only one connection (RFC 9110, section 7.6.1), and are not passed on.

use hyper::header::{CONNECTION, HeaderMap, HeaderName, PROXY_AUTHORIZATION, TE, TRAILER, UPGRADE};

/// Headers that concern only the connection on which they arrived.
const OF_CONNECTION: [HeaderName; 7] = [
    CONNECTION,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Removes these headers, and those that `Connection` names.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_CONNECTION.iter().chain(&named) {
        headers.remove(name);
    }
}
