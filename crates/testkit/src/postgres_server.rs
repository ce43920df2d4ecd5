//! A PostgreSQL server of the tests.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{TIMEOUT, until};

/// Password of the server's user `ann`, which is only asked for over TCP.
pub const PASSWORD: &str = "correct horse";

/// Runs the server with the rights of `nobody`, because it refuses to run as root.
const NOBODY: u32 = 65534;

/// Starts the server, which lines of standard input crash and start again. When standard input ends, which it does when
/// the test process ends in any way, the server is stopped and its folder is removed. Answers each line.
const KEEPER: &str = r#"
    start() {
      "$1/postgres" -D "$2/data" -c unix_socket_directories="$2" -c port="$3" -c listen_addresses=127.0.0.1 \
        -c fsync=off -c max_connections=200 -c shared_buffers=32MB < /dev/null >> "$2/log" 2>&1 & server=$!
    }
    start "$@"
    while read -r line; do
      case $line in
        crash) kill -QUIT "$server"; wait "$server" ;;
        start) start "$@" ;;
      esac
      echo "$line"
    done
    kill -INT "$server"
    wait "$server"
    rm -rf "$2"
"#;

/// Makes an authority, and certificates for the server and for the user `bob`.
const CERTIFICATES: &str = r#"
    request() {
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$2" -keyout "$1.key" -out "$1.csr"
      openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out "$1.crt" -extfile "$1.ext"
    }
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test-authority \
      -keyout ca.key -out ca.pem
    echo subjectAltName=DNS:localhost > server.ext
    echo extendedKeyUsage=clientAuth > bob.ext
    request server localhost
    request bob bob
    chmod 600 server.key
"#;

/// A server in a temporary folder. Its superuser is `ann`.
pub struct PostgresServer {
    folder: PathBuf,
    port: u16,
    keeper: Child,
    /// Answers of the keeper.
    answers: BufReader<ChildStdout>,
}

/// Returns the folder with the programs of the newest server.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|entry| entry.path()).collect();
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    versions.sort_by_key(number);
    folders.extend(versions.into_iter().rev().map(|version| version.join("bin")));
    let found =
        folders.into_iter().find(|folder| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file()));
    found.expect("PostgreSQL is installed")
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Gives a file or a folder to the user of the server.
fn own(path: &Path) {
    if is_root() {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("it belongs to nobody");
    }
}

fn append(path: &Path, text: &str) {
    let mut file = std::fs::File::options().append(true).open(path).expect("a file of the server");
    file.write_all(text.as_bytes()).expect("a longer file");
}

/// Returns a command that runs without the rights of root.
fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    command
}

impl PostgresServer {
    /// Returns the server that all tests of a process share. It ends with the process.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<PostgresServer> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    /// Starts a server of its own, which is removed on drop.
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Starts a server with a certificate for `localhost`, whose authority is `ca.pem` in its folder. Its user `bob` has
    /// no password, but the certificate `bob.crt` with the key `bob.key`.
    pub fn start_encrypted() -> Self {
        Self::start_with(|folder| {
            let made = Command::new("sh").args(["-ec", CERTIFICATES]).current_dir(folder).output().expect("a shell");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            own(&folder.join("server.key"));
            let files = "ssl = on\nssl_cert_file = '../server.crt'\nssl_key_file = '../server.key'\nssl_ca_file = '../ca.pem'\n";
            append(&folder.join("data/postgresql.conf"), files);
            let access = std::fs::read_to_string(folder.join("data/pg_hba.conf")).expect("the access rules");
            let access = format!("hostssl all bob 127.0.0.1/32 cert\n{access}");
            std::fs::write(folder.join("data/pg_hba.conf"), access).expect("new access rules");
        })
    }

    /// Starts a server after `prepare` has changed files in its folder.
    fn start_with(prepare: impl FnOnce(&Path)) -> Self {
        let scratch = tempfile::Builder::new().prefix("pg").tempdir().expect("a folder for the server");
        let folder = scratch.path().to_owned();
        own(&folder);
        let programs = programs();
        let password = folder.join("password");
        std::fs::write(&password, PASSWORD).expect("a password file");
        let mut make = unprivileged(&programs.join("initdb"));
        make.args([
            "--username=ann",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--no-sync",
            "--no-instructions",
        ])
        .args(["--encoding=UTF8", "--locale=C"])
        .arg(format!("--pwfile={}", password.display()))
        .arg(format!("--pgdata={}", folder.join("data").display()));
        let made = make.output().expect("initdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        prepare(&folder);
        // Another program may take the port in between; then the server does not start, and the test says so.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
        let mut keeper = keep(&programs, &folder, port);
        // From now on, the keeper removes it.
        let _ = scratch.keep();
        let answers = BufReader::new(keeper.stdout.take().expect("its standard output"));
        let server = Self { folder, port, keeper, answers };
        server.wait();
        server
    }

    /// Waits until the server accepts connections.
    fn wait(&self) {
        let socket = self.folder.join(format!(".s.PGSQL.{}", self.port));
        let log = || std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let is_ready = || socket.exists() && log().contains("ready to accept connections");
        assert!(until(is_ready), "the server did not start within {TIMEOUT:?}: {}", log());
    }

    /// Returns the URL of a record of its own, through the socket.
    pub fn url(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let schema = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        format!("postgres:///postgres?user=ann&host={}&port={}&schema={schema}", self.folder.display(), self.port)
    }

    /// Returns the port on 127.0.0.1, where a password is required.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder of the server's socket and certificates.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends the server at once, as a crash would.
    pub fn crash(&mut self) {
        self.tell("crash");
    }

    /// Starts the server again after a [`crash`](Self::crash).
    pub fn start_again(&mut self) {
        let log = std::fs::File::options().write(true).truncate(true).open(self.folder.join("log"));
        log.expect("an empty log");
        self.tell("start");
        self.wait();
    }

    fn tell(&mut self, line: &str) {
        let input = self.keeper.stdin.as_mut().expect("its standard input");
        writeln!(input, "{line}").expect("the keeper runs");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the keeper answers");
        assert_eq!(answer.trim_end(), line);
    }
}

/// Starts the process that starts and stops the server.
fn keep(programs: &Path, folder: &Path, port: u16) -> Child {
    let mut keeper = unprivileged(Path::new("/bin/sh"));
    keeper.args(["-c", KEEPER, "keeper"]).args([programs, folder]).arg(port.to_string());
    keeper.current_dir("/");
    // In a process group of its own, Ctrl-C on the tests does not stop it before them.
    std::os::unix::process::CommandExt::process_group(&mut keeper, 0);
    let keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    keeper.expect("a shell")
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
