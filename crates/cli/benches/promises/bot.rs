//! A bot behind HTTP on loopback that echoes messages after a delay. It uses a single thread, so that it hardly
//! affects the measurement.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 4096;

/// Starts a bot that answers after `delay`, and returns its URL. It runs until the process ends.
pub fn open(delay: Duration) -> String {
    let (tell, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let socket = TcpSocket::new_v4().expect("a socket");
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
            let listener = socket.listen(BACKLOG).expect("a listener");
            tell.send(listener.local_addr().expect("an address")).expect("somebody listens");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, delay));
            }
        });
    });
    format!("http://{}/chat", address.recv().expect("a bot"))
}

async fn serve(stream: TcpStream, delay: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(body) = read(&mut stream).await? {
        tokio::time::sleep(delay).await;
        let body: serde_json::Value = serde_json::from_slice(&body)?;
        let text = body["message"].as_str().unwrap_or_default();
        let answer = serde_json::json!({ "message": format!("You said: {text}") }).to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
        stream.write_all((head + &answer).as_bytes()).await?;
    }
    Ok(())
}

/// Reads the body of the next request; `None` if there is none.
async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Vec<u8>>> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap_or(0);
            }
            None if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(body))
}
