//! Formats of addresses and identifiers.

use std::net::{Ipv4Addr, Ipv6Addr};

/// True for an absolute URI with something after its scheme.
pub(super) fn is_uri(text: &str) -> bool {
    scheme(text).is_some_and(|(_, rest)| !rest.starts_with(['?', '#']) && !rest.is_empty() && is_reference(rest))
}

/// True for an absolute or relative URI.
pub(super) fn is_uri_reference(text: &str) -> bool {
    scheme(text).is_some_and(|(_, rest)| is_reference(rest)) || is_reference(text)
}

/// Splits off the scheme.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut characters = scheme.bytes();
    let starts = characters.next().is_some_and(|b| b.is_ascii_alphabetic());
    (starts && characters.all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))).then_some((scheme, rest))
}

/// True for a valid text after a scheme.
fn is_reference(text: &str) -> bool {
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    if !made_of(fragment, "/?:@") || !made_of(query, "/?:@") {
        return false;
    }
    match text.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(authority) && made_of(path, "/:@")
        }
        None => made_of(text, "/:@"),
    }
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.split_once('@').unwrap_or(("", text));
    if !made_of(user, ":") {
        return false;
    }
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return is_literal(address) && (port.is_empty() || port.strip_prefix(':').is_some_and(all_digits));
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    made_of(name, "") && all_digits(port)
}

fn is_literal(text: &str) -> bool {
    let future = || {
        let (version, rest) = text.strip_prefix(['v', 'V'])?.split_once('.')?;
        let hex = !version.is_empty() && version.bytes().all(|b| b.is_ascii_hexdigit());
        Some(hex && !rest.is_empty() && !rest.contains('%') && made_of(rest, ":"))
    };
    text.parse::<Ipv6Addr>().is_ok() || future().unwrap_or(false)
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// True if `text` only has unreserved characters, sub-delimiters, characters in `more`, and percent-encoded bytes.
fn made_of(text: &str, more: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&b) || more.as_bytes().contains(&b);
    all_but_percents(text, |c| u8::try_from(c).is_ok_and(plain))
}

/// True if every character outside of percent-encoded bytes is `plain`.
fn all_but_percents(text: &str, plain: impl Fn(char) -> bool) -> bool {
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let hex = |next: Option<char>| next.is_some_and(|c| c.is_ascii_hexdigit());
        let fits = if c == '%' { hex(characters.next()) && hex(characters.next()) } else { plain(c) };
        if !fits {
            return false;
        }
    }
    true
}

/// True for a URI with `{placeholders}` as defined in RFC 6570.
pub(super) fn is_uri_template(text: &str) -> bool {
    let literal = |c: char| c > ' ' && !"\"'<>%\\^`{|}".contains(c);
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((expression, after)) = behind.split_once('}') else { return false };
        if !all_but_percents(before, literal) || !is_expression(expression) {
            return false;
        }
        rest = after;
    }
    all_but_percents(rest, literal)
}

fn is_expression(text: &str) -> bool {
    let variables = text.strip_prefix(|c| "+#./;?&=,!@|".contains(c)).unwrap_or(text);
    variables.split(',').all(|variable| {
        let name = match variable.split_once(':') {
            Some((name, length)) if (1..=4).contains(&length.len()) && all_digits(length) => {
                if length.starts_with('0') {
                    return false;
                }
                name
            }
            Some(_) => return false,
            None => variable.strip_suffix('*').unwrap_or(variable),
        };
        !name.is_empty() && all_but_percents(name, |c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// True for a public URL of the web or FTP, without private networks and bare host names.
pub(super) fn is_url(text: &str) -> bool {
    let lower = text.get(..8.min(text.len())).unwrap_or(text).to_ascii_lowercase();
    let Some(start) = ["https://", "http://", "ftp://"].iter().find(|start| lower.starts_with(**start)) else {
        return false;
    };
    let rest = &text[start.len()..];
    let behind_user = rest.match_indices('@').filter(|(at, _)| *at > 0 && !rest[..*at].contains(char::is_whitespace));
    is_public_place(rest) || behind_user.map(|(at, _)| &rest[at + 1..]).any(is_public_place)
}

fn is_public_place(text: &str) -> bool {
    let (host, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    if path.contains(char::is_whitespace) {
        return false;
    }
    let (host, port) = match host.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (host, None),
    };
    port.is_none_or(|port| (2..=5).contains(&port.len()) && all_digits(port)) && (is_public_v4(host) || is_domain(host))
}

fn is_public_v4(host: &str) -> bool {
    let Ok(address) = host.parse::<Ipv4Addr>() else { return false };
    let [first, _, _, last] = address.octets();
    let private = first == 10 || first == 127 || address.is_link_local() || address.is_private();
    (1..=223).contains(&first) && (1..=254).contains(&last) && !private
}

fn is_domain(host: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || ('\u{a1}'..='\u{ffff}').contains(&c);
    let part = |part: &str| !part.is_empty() && part.chars().all(|c| letter(c) || c.is_ascii_digit());
    let Some((rest, top)) = host.rsplit_once('.') else { return false };
    top.chars().count() >= 2 && top.chars().all(letter) && rest.split('.').all(|label| label.split('-').all(part))
}

/// True for `name@domain.tld`, without quotes and comments.
pub(super) fn is_email(text: &str) -> bool {
    let Some((name, domain)) = text.split_once('@') else { return false };
    let atom = |atom: &str| {
        !atom.is_empty() && atom.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&b))
    };
    name.split('.').all(atom) && domain.contains('.') && domain.split('.').all(is_label)
}

/// True for letters, digits and inner hyphens.
fn is_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// True for a host name. One dot at its end is allowed.
pub(super) fn is_hostname(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    (1..=253).contains(&name.len()) && name.split('.').all(|label| label.len() <= 63 && is_label(label))
}

pub(super) fn is_ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

/// True for 32 hexadecimal digits in five groups, with or without `urn:uuid:`.
pub(super) fn is_uuid(text: &str) -> bool {
    let bare = match text.get(..9) {
        Some(start) if start.eq_ignore_ascii_case("urn:uuid:") => &text[9..],
        _ => text,
    };
    let lengths = [8, 4, 4, 4, 12];
    bare.split('-').count() == lengths.len()
        && bare
            .split('-')
            .zip(lengths)
            .all(|(group, length)| group.len() == length && group.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// True for `/a/0`, with `~0` and `~1` for `~` and `/`. The empty text is the whole document.
pub(super) fn is_json_pointer(text: &str) -> bool {
    (text.is_empty() || text.starts_with('/')) && tildes_are_escapes(text)
}

/// True for `#/a/0`, percent-encoded.
pub(super) fn is_json_pointer_uri_fragment(text: &str) -> bool {
    let Some(pointer) = text.strip_prefix('#') else { return false };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.!$&'()*+,;:=@~/".contains(c);
    is_json_pointer(pointer) && all_but_percents(pointer, plain)
}

/// True for `1/a` or `0#`: a number of levels up, then a pointer or the key itself.
pub(super) fn is_relative_json_pointer(text: &str) -> bool {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (up, rest) = text.split_at(length);
    let counts = up == "0" || (!up.is_empty() && !up.starts_with('0'));
    counts && (rest == "#" || is_json_pointer(rest))
}

fn tildes_are_escapes(text: &str) -> bool {
    text.match_indices('~').all(|(at, _)| text[at + 1..].starts_with(['0', '1']))
}

/// True for Base64 with its padding.
pub(super) fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - data.len() <= 2
        && data.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}
