//! DNS lookups by processes whose network is closed. None is answered with an address: the relay itself resolves the
//! names of allowed hosts. The lookups reveal the hosts wanted by programs that do not use the proxy.

use std::time::Duration;

use model::{Destination, EgressAttempt, EgressVerdict, EgressWay};
use tokio::net::UdpSocket;

use super::{LONGEST_HOST, Relay};

/// Size of a message without extensions, in bytes.
const LARGEST: usize = 512;

/// Size of a message's header, in bytes.
const HEADER: usize = 12;

/// Pause after a system error.
const PAUSE: Duration = Duration::from_millis(20);

/// Port of DNS.
const PORT: u16 = 53;

impl Relay {
    /// Answers lookups with "no such name" until the future is dropped. `by_command` is true if the processes are not
    /// the agent's.
    pub async fn answer_lookups(&self, socket: &UdpSocket, by_command: bool) {
        let mut message = [0; LARGEST];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut message).await else {
                // An error usually belongs to an earlier answer that could not be delivered.
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let Some((name, end)) = question(&message[..length]) else { continue };
            self.report_lookup(&name, by_command);
            let _ = socket.send_to(&no_such_name(&message[..end]), from).await;
        }
    }

    fn report_lookup(&self, name: &str, by_command: bool) {
        let host = Destination::new(name, PORT).map(|destination| destination.host);
        let host = host.unwrap_or_else(|| name.chars().take(LONGEST_HOST).collect());
        let attempt = EgressAttempt {
            is_model: self.rules.model.iter().any(|destination| destination.host == host),
            host,
            port: None,
            verdict: EgressVerdict::Refused,
            way: EgressWay::Dns,
            by_command,
            reason: Some("only the proxy resolves names".to_owned()),
        };
        self.report(attempt, name);
    }
}

/// Returns the name that a query looks up, and the end of its question. Names in questions are never compressed.
fn question(message: &[u8]) -> Option<(String, usize)> {
    let is_query = message.get(2)? & 0x80 == 0 && message.get(4..6)? == [0, 1];
    let mut at = HEADER;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        match length {
            0 => break,
            1..=63 => labels.push(String::from_utf8_lossy(message.get(at..at + length)?).into_owned()),
            _ => return None,
        }
        at += length;
    }
    // The type and the class of the question follow.
    let end = at + 4;
    (is_query && !labels.is_empty() && end <= message.len()).then(|| (labels.join("."), end))
}

/// Returns the answer to a message that consists of a header and one question.
fn no_such_name(asked: &[u8]) -> Vec<u8> {
    let mut answer = asked.to_vec();
    // A response; the kind of query and the request for recursion are repeated.
    answer[2] = 0x80 | (asked[2] & 0x79);
    // Recursion is available, and the name does not exist.
    answer[3] = 0x80 | 3;
    answer[6..HEADER].fill(0);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Query for the addresses of `A.example`, with an extension after the question.
    const QUERY: &[u8] =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01A\x07example\x00\x00\x01\x00\x01\x00\x00\x29\x04\xd0";

    #[test]
    fn the_name_of_a_query_is_read_and_answered() {
        let (name, end) = question(QUERY).unwrap();
        assert_eq!(name, "A.example");
        let answer = no_such_name(&QUERY[..end]);
        assert_eq!(&answer[..HEADER], b"\x12\x34\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00");
        assert_eq!(&answer[HEADER..], &QUERY[HEADER..end]);
    }

    #[test]
    fn a_message_that_is_not_a_query_is_ignored() {
        for length in 0..27 {
            assert_eq!(question(&QUERY[..length]), None, "{length}");
        }
        let mut answer = QUERY.to_vec();
        answer[2] |= 0x80;
        assert_eq!(question(&answer), None);
        let mut compressed = QUERY.to_vec();
        compressed[HEADER] = 0xc0;
        assert_eq!(question(&compressed), None);
    }
}
