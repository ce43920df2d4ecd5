//! The relay: what it connects to, and what it reports.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use llm::Proxies;
use model::{Destination, EgressAttempt, HostPattern};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use trialrun_gateway::{Relay, RelayRules};

/// A relay with a proxy, and what it reported.
struct Bench {
    proxy: u16,
    relay: Arc<Relay>,
    reported: Arc<Mutex<Vec<EgressAttempt>>>,
    serving: JoinHandle<()>,
}

impl Bench {
    async fn new(allowed: &[&str], model: &[Destination], proxies: &[(&str, &str)]) -> Self {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let report = {
            let reported = Arc::clone(&reported);
            move |attempt, _: &str| reported.lock().unwrap().push(attempt)
        };
        let patterns: Vec<HostPattern> = allowed.iter().map(|host| host.parse().unwrap()).collect();
        let rules = RelayRules { model: model.to_vec(), allowed: patterns, ..RelayRules::default() };
        let proxies = Proxies::of(|name| proxies.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
        let relay = Relay::new(rules, &proxies, report, |_| {});
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let proxy = listener.local_addr().unwrap().port();
        let serving = {
            let relay = Arc::clone(&relay);
            tokio::spawn(async move { relay.serve_proxy(&listener, false).await })
        };
        Self { proxy, relay, reported, serving }
    }

    /// Sends `sent` to the proxy, and returns the whole response.
    async fn ask(&self, sent: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.proxy)).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Returns the attempts so far, in words.
    fn attempts(&self) -> Vec<String> {
        self.reported.lock().unwrap().iter().map(EgressAttempt::describe).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Starts a server that answers each connection with `answer` and then closes it. Returns its port, and what it
/// receives.
async fn server(answer: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut sent = vec![0; 4096];
            let length = stream.read(&mut sent).await.unwrap_or(0);
            log.lock().unwrap().push(String::from_utf8_lossy(&sent[..length]).into_owned());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (port, received)
}

const PAGE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\nkeep-alive: x\r\n\r\npage";

#[tokio::test]
async fn a_tunnel_to_an_allowed_host_carries_bytes_in_both_directions() {
    let (port, received) = server("from the server").await;
    let bench = Bench::new(&[&format!("localhost:{port}")], &[], &[]).await;
    let answer = bench.ask(&format!("CONNECT LOCALHOST.:{port} HTTP/1.1\r\nHost: x\r\n\r\nSSH-2.0-client\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("from the server"), "{answer}");
    assert_eq!(*received.lock().unwrap(), ["SSH-2.0-client\r\n"]);
    assert_eq!(bench.attempts(), [format!("allowed localhost:{port}")]);
}

#[tokio::test]
async fn a_host_that_is_not_allowed_is_refused_in_every_spelling_and_reported_once() {
    let (port, received) = server(PAGE).await;
    let bench = Bench::new(&[&format!("localhost:{port}"), "*.example.com"], &[], &[]).await;
    for host in ["2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "127.0.0.1."] {
        let answer =
            bench.ask(&format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("network policy"), "{host}: {answer}");
    }
    assert_eq!(bench.attempts(), [format!("refused 127.0.0.1:{port}, not allowed by the network policy")]);
    for (target, status) in [
        (format!("user:dummy@localhost:{port}"), "403"),
        ("localhost".to_owned(), "400"),
        ("localhost:99999".to_owned(), "400"),
        ("example.com:443".to_owned(), "403"),
    ] {
        let answer = bench.ask(&format!("CONNECT {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{target}: {answer}");
        assert!(!answer.contains("dummy"), "{answer}");
    }
    let origin = bench.ask("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    assert!(origin.starts_with("HTTP/1.1 400 "), "{origin}");
    assert!(received.lock().unwrap().is_empty());
    assert!(!bench.attempts().join("\n").contains("dummy"), "{:?}", bench.attempts());
}

#[tokio::test]
async fn a_plain_request_reaches_the_host_of_its_address_whatever_the_header_says() {
    let (port, received) = server(PAGE).await;
    let bench = Bench::new(&[&format!("localhost:{port}")], &[], &[]).await;
    let head = "Host: other.example\r\nProxy-Authorization: Basic eA==\r\nX-Once: 1\r\nConnection: close, x-once\r\n";
    let answer = bench.ask(&format!("GET http://localhost:{port}/a?b HTTP/1.1\r\n{head}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("page"), "{answer}");
    assert!(!answer.contains("keep-alive: x"), "{answer}");
    let sent = received.lock().unwrap().join("");
    assert!(
        sent.starts_with("GET /a?b HTTP/1.1\r\n") && sent.contains(&format!("host: localhost:{port}\r\n")),
        "{sent}"
    );
    assert!(!sent.contains("other.example") && !sent.contains("eA==") && !sent.contains("x-once"), "{sent}");
    let refused = bench.ask("GET http://other.example/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
}

#[tokio::test]
async fn a_tunnel_ends_when_its_client_asks_for_another_host_inside() {
    let (port, received) = server(PAGE).await;
    let bench = Bench::new(&[&format!("localhost:{port}")], &[], &[]).await;
    let tunnel = format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: x\r\n\r\n");
    let answer = bench.ask(&format!("{tunnel}GET / HTTP/1.1\r\nHost: Other.example\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && !answer.contains("page"), "{answer}");
    assert!(received.lock().unwrap().concat().is_empty());
    let answer = bench.ask(&format!("{tunnel}GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")).await;
    assert!(answer.ends_with("page"), "{answer}");
    let inside = format!("refused other.example:{port}, requested in a connection to localhost");
    assert_eq!(bench.attempts(), [format!("allowed localhost:{port}"), inside]);
}

#[tokio::test]
async fn the_proxy_of_the_machine_is_used_and_its_password_is_not_shown() {
    let (upstream, received) = server("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n").await;
    let address = format!("http://user:dummy-password@127.0.0.1:{upstream}");
    let bench = Bench::new(&["api.example"], &[], &[("HTTPS_PROXY", &address)]).await;
    let answer = bench.ask("CONNECT api.example:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("answered 407"), "{answer}");
    assert!(!answer.contains("dummy") && !format!("{:?}", bench.relay).contains("dummy"), "{answer}");
    let sent = received.lock().unwrap().join("");
    assert!(sent.starts_with("CONNECT api.example:443 HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("proxy-authorization: Basic dXNlcjpkdW1teS1wYXNzd29yZA=="), "{sent}");
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_is_remembered_until_it_can() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let destination = Destination::new("127.0.0.1", listener.local_addr().unwrap().port()).unwrap();
    drop(listener);
    let bench = Bench::new(&[], std::slice::from_ref(&destination), &[]).await;
    let tunnel = format!("CONNECT {destination} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(bench.ask(&tunnel).await.starts_with("HTTP/1.1 502 "));
    assert!(bench.relay.model_failure().is_some_and(|failure| failure.contains(&destination.to_string())));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, destination.port)).await.unwrap();
    let (answer, accepted) = tokio::join!(bench.ask(&tunnel), async { listener.accept().await.map(drop) });
    accepted.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(bench.relay.model_failure(), None);
    assert_eq!(bench.attempts(), [format!("allowed {destination}, the model")]);
}

#[tokio::test]
async fn a_forwarded_port_leads_to_its_own_destination() {
    let (port, _) = server("from the server").await;
    let bench = Bench::new(&[], &[], &[]).await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (relay, destination) = (Arc::clone(&bench.relay), Destination::new("127.0.0.1", port).unwrap());
    let serving = tokio::spawn(async move { relay.forward(&listener, destination, false).await });
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "from the server");
    serving.abort();
}
