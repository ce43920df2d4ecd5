//! Settings of a connection, from a URL, variables and a password file.

use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

/// Schemes of URLs that name a PostgreSQL server.
pub const SCHEMES: [&str; 2] = ["postgres", "postgresql"];

/// Schema that holds the tables, unless the URL names another one.
const SCHEMA: &str = "trialrun";

/// Port of a server, unless the URL names another one.
const PORT: u16 = 5432;

/// Size in bytes up to which a password file is read.
const MAX_PASSWORD_FILE: u64 = 1 << 20;

/// Parameters of a URL.
const PARAMETERS: [&str; 8] = ["host", "port", "schema", "sslcert", "sslkey", "sslmode", "sslrootcert", "user"];

/// Place of a PostgreSQL database, and everything that is needed to connect to it. Neither `Display` nor `Debug` shows
/// the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: Option<String>,
    pub(super) database: Option<String>,
    pub(super) password: Option<String>,
    pub(super) schema: String,
    pub(super) ssl_mode: Option<SslMode>,
    pub(super) root_certificate: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    /// Reason why a password file was ignored.
    pub(super) ignored: Option<String>,
}

/// Protection of a connection, with the names of libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// No encryption.
    Disable,
    /// Encryption if the server offers it.
    Prefer,
    /// Encryption. The certificate is only checked if `sslrootcert` is set.
    Require,
    /// Encryption, and a certificate of a known authority.
    VerifyCa,
    /// Encryption, and a certificate of a known authority for this host.
    VerifyFull,
}

impl SslMode {
    const ALL: [(&str, Self); 5] = [
        ("disable", Self::Disable),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    /// Returns the mode with that name, which is the value of `setting`.
    fn from_name(name: &str, setting: &str) -> Result<Self, SettingsError> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            let modes = "`disable`, `prefer`, `require`, `verify-ca` or `verify-full`";
            SettingsError(format!("`{setting}` must be {modes}"))
        })
    }
}

/// Reason why a URL cannot be used. It never contains the URL, which may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

/// Surroundings of the program, from which it fills in what a URL does not say. Libraries do not read them on their own.
pub struct Surroundings<'a> {
    /// Returns the value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Home directory of the user.
    pub home: Option<&'a Path>,
}

impl Settings {
    /// Reads a URL such as `postgres://user@host:5432/database?sslmode=verify-full`.
    ///
    /// # Errors
    /// Returns an error if the URL is not valid or has a parameter that is not known.
    pub fn from_url(text: &str) -> Result<Self, SettingsError> {
        let no = |reason: &str| Err(SettingsError(format!("the URL of the record {reason}")));
        let Ok(url) = Url::parse(text) else {
            return no("is not valid; in a password, write `/` as `%2F`, `@` as `%40`, `#` as `%23` and `?` as `%3F`");
        };
        if !SCHEMES.contains(&url.scheme()) {
            return no("does not begin with `postgres://`");
        }
        let decoded = |text: &str| {
            let text = percent_decode_str(text).decode_utf8().map(std::borrow::Cow::into_owned);
            text.map_err(|_| SettingsError("the URL of the record is not UTF-8".to_owned()))
        };
        let some = |text: &str| Ok::<_, SettingsError>(Some(decoded(text)?).filter(|text| !text.is_empty()));
        let database = some(url.path().trim_start_matches('/'))?;
        // These are what a password leaves behind whose special characters are not escaped.
        let is_odd = |text: &str| text.contains(['@', '/', ':']);
        if url.fragment().is_some() || database.as_deref().is_some_and(is_odd) {
            return no("is ambiguous; in a password, write `/` as `%2F`, `@` as `%40`, `#` as `%23` and `?` as `%3F`");
        }
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let mut settings = Self {
            host: some(host)?.unwrap_or_else(|| "localhost".to_owned()),
            port: url.port().unwrap_or(PORT),
            user: some(url.username())?,
            database,
            password: url.password().map(some).transpose()?.flatten(),
            schema: SCHEMA.to_owned(),
            ssl_mode: None,
            root_certificate: None,
            certificate: None,
            key: None,
            ignored: None,
        };
        for (name, value) in url.query_pairs() {
            let value = value.into_owned();
            match &*name {
                "host" => settings.host = value,
                "port" => match value.parse() {
                    Ok(port) => settings.port = port,
                    Err(_) => return no("has a `port` that is not a number"),
                },
                "user" => settings.user = Some(value),
                "schema" if is_name(&value) => settings.schema = value,
                "schema" => return no("has a `schema` with other characters than letters, digits, `_` and `-`"),
                "sslmode" => settings.ssl_mode = Some(SslMode::from_name(&value, "sslmode")?),
                "sslrootcert" => settings.root_certificate = Some(value.into()),
                "sslcert" => settings.certificate = Some(value.into()),
                "sslkey" => settings.key = Some(value.into()),
                "password" => settings.password = Some(value),
                name if is_name(name) => {
                    let known = PARAMETERS.join("`, `");
                    return no(&format!("has the parameter `{name}`; known parameters are `{known}`"));
                }
                _ => return no("has a parameter that is not known; in a password, write `?` as `%3F`"),
            }
        }
        if settings.certificate.is_some() != settings.key.is_some() {
            return no("must have both `sslcert` and `sslkey`, or neither");
        }
        Ok(settings)
    }

    /// Fills in what the URL does not say, as libpq does: from `PGUSER`, `PGPASSWORD`, `PGSSLMODE`, `PGSSLROOTCERT`,
    /// `PGSSLCERT` and `PGSSLKEY`, the password file (`PGPASSFILE` or `~/.pgpass`), and the name of the user.
    ///
    /// # Errors
    /// Returns an error if `PGSSLMODE` has an unknown value.
    pub fn complete(&mut self, from: &Surroundings<'_>) -> Result<(), SettingsError> {
        let variable = |name: &str| (from.variable)(name).filter(|value| !value.is_empty());
        if self.user.is_none() {
            self.user = ["PGUSER", "USER", "LOGNAME"].into_iter().find_map(variable);
        }
        if self.ssl_mode.is_none() {
            self.ssl_mode = variable("PGSSLMODE").map(|name| SslMode::from_name(&name, "PGSSLMODE")).transpose()?;
        }
        let path = |name: &str| variable(name).map(PathBuf::from);
        self.root_certificate = self.root_certificate.take().or_else(|| path("PGSSLROOTCERT"));
        if self.certificate.is_none() {
            (self.certificate, self.key) = (path("PGSSLCERT"), path("PGSSLKEY"));
        }
        if self.certificate.is_some() != self.key.is_some() {
            return Err(SettingsError("`PGSSLCERT` and `PGSSLKEY` must both be set, or neither".to_owned()));
        }
        if self.password.is_none() {
            self.password = variable("PGPASSWORD");
        }
        if self.password.is_none()
            && let Some(path) = path("PGPASSFILE").or_else(|| Some(from.home?.join(".pgpass")))
        {
            match read_password_file(&path) {
                Ok(text) => self.password = text.lines().find_map(|line| self.password_in(line)),
                Err(reason) => self.ignored = Some(format!("{} was ignored, because {reason}", path.display())),
            }
        }
        Ok(())
    }

    /// Returns the URL with the password, by which secrets are found in texts.
    pub fn with_password(&self) -> String {
        let escaped = |text: &Option<String>| {
            utf8_percent_encode(text.as_deref().unwrap_or_default(), NON_ALPHANUMERIC).to_string()
        };
        format!("postgres://{}:{}@{}", escaped(&self.user), escaped(&self.password), self.host)
    }

    /// Returns the password in a line `host:port:database:user:password` of a password file, if the line is for these
    /// settings.
    fn password_in(&self, line: &str) -> Option<String> {
        if line.starts_with('#') {
            return None;
        }
        let mut fields = vec![String::new()];
        let mut characters = line.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => fields.last_mut()?.extend(characters.next()),
                ':' => fields.push(String::new()),
                _ => fields.last_mut()?.push(character),
            }
        }
        let [host, port, database, user, password] = <[String; 5]>::try_from(fields).ok()?;
        // A socket is listed as `localhost`.
        let hosts = if self.is_socket() { [self.host.as_str(), "localhost"] } else { [self.host.as_str(); 2] };
        let is = |field: &str, value: &str| field == "*" || field == value;
        (hosts.iter().any(|name| is(&host, name))
            && is(&port, &self.port.to_string())
            && is(&database, self.database().unwrap_or_default())
            && is(&user, self.user.as_deref().unwrap_or_default()))
        .then_some(password)
        .filter(|password| !password.is_empty())
    }

    /// Returns the name of the database: by default, that of the user.
    pub(super) fn database(&self) -> Option<&str> {
        self.database.as_deref().or(self.user.as_deref())
    }

    /// Returns `true` if the host is a folder with a socket.
    pub(super) fn is_socket(&self) -> bool {
        self.host.starts_with('/')
    }

    /// Returns the protection of the connection. By default, a connection over a network is encrypted and the server's
    /// certificate is checked.
    pub(super) fn ssl_mode(&self) -> SslMode {
        let is_loopback = || {
            let address = self.host.parse::<std::net::IpAddr>();
            self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
        };
        match self.ssl_mode {
            _ if self.is_socket() => SslMode::Disable,
            // As in libpq, a root certificate is there to be checked.
            Some(SslMode::Require) if self.root_certificate.is_some() => SslMode::VerifyCa,
            Some(mode) => mode,
            None if is_loopback() => SslMode::Prefer,
            None => SslMode::VerifyFull,
        }
    }
}

/// Reads a password file, unless others may read it.
fn read_password_file(path: &Path) -> Result<String, String> {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            return Err("other users may read it; run `chmod 600` on it".to_owned());
        }
        _ => {}
    }
    files::read_named_text(path, MAX_PASSWORD_FILE).map_err(|error| error.to_string())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char))
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        if !self.is_socket() {
            let brackets = if self.host.contains(':') { ("[", "]") } else { ("", "") };
            write!(f, "{}{}{}", brackets.0, self.host, brackets.1)?;
            if self.port != PORT {
                write!(f, ":{}", self.port)?;
            }
        }
        write!(f, "/{}", self.database().unwrap_or_default())?;
        let mode = SslMode::ALL.iter().find(|(_, mode)| Some(*mode) == self.ssl_mode);
        let file = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let parameters = [
            ("host", self.is_socket().then(|| self.host.clone())),
            ("port", (self.is_socket() && self.port != PORT).then(|| self.port.to_string())),
            ("schema", (self.schema != SCHEMA).then(|| self.schema.clone())),
            ("sslmode", mode.map(|(name, _)| (*name).to_owned())),
            ("sslrootcert", file(&self.root_certificate)),
            ("sslcert", file(&self.certificate)),
            ("sslkey", file(&self.key)),
        ];
        let set = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        for ((name, value), separator) in set.zip(std::iter::once('?').chain(std::iter::repeat('&'))) {
            write!(f, "{separator}{name}={value}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Settings({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Settings {
        Settings::from_url(url).unwrap()
    }

    #[test]
    fn a_url_is_shown_without_its_password() {
        let cases = [
            ("postgres://ann:hunter2@db.example/runs", "postgres://ann@db.example/runs"),
            ("postgresql://ann:hunter%402@[::1]:6000/runs?schema=web", "postgres://ann@[::1]:6000/runs?schema=web"),
            ("postgres:///runs?host=/run/postgresql&password=hunter2", "postgres:///runs?host=/run/postgresql"),
            ("postgres://%2Frun%2Fpg/runs", "postgres:///runs?host=/run/pg"),
            ("postgres://ann@db", "postgres://ann@db/ann"),
            (
                "postgres://ann@db/a?sslrootcert=/ca.pem&sslmode=verify-ca",
                "postgres://ann@db/a?sslmode=verify-ca&sslrootcert=/ca.pem",
            ),
        ];
        for (url, shown) in cases {
            assert_eq!(read(url).to_string(), shown);
            assert_eq!(read(shown).to_string(), shown);
            assert!(!format!("{:?}", read(url)).contains("hunter"), "{url}");
        }
        let special = read("postgres://ann:hunter%402@db");
        assert_eq!(special.password.as_deref(), Some("hunter@2"));
        assert_eq!(special.with_password(), "postgres://ann:hunter%402@db");
    }

    #[test]
    fn a_password_with_special_characters_is_in_no_error() {
        for url in [
            "postgres://ann:12/hunter2@db/runs",
            "postgres://ann:hunter/2@db/runs",
            "postgres://ann:12?hunter2@db/runs",
            "postgres://ann:12#hunter2@db/runs",
            "postgres://db/runs?hunter2=1&x",
            "postgres://db/runs?sslmode=hunter2",
            "postgres://db/runs?sslcert=hunter2",
            "mysql://ann:hunter2@db/runs",
        ] {
            let error = Settings::from_url(url).unwrap_err().to_string();
            assert!(!error.contains("hunter2") || url.contains("?hunter2="), "{url}: {error}");
        }
    }

    #[test]
    fn a_password_comes_from_the_url_a_variable_or_the_password_file() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".pgpass");
        std::fs::write(&file, "# db:*:*:*:no\nother:*:*:*:no\ndb:5432:*:a\\:b:from\\\\file\n*:*:*:ann:last\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let password = |url: &str, variables: &[(&str, &str)]| {
            let mut settings = read(url);
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            settings.complete(&Surroundings { variable: &variable, home: Some(home.path()) }).unwrap();
            (settings.password, settings.ignored)
        };
        let of = |url: &str, variables: &[(&str, &str)]| password(url, variables).0.unwrap_or_default();
        assert_eq!(of("postgres://ann:x@db/runs", &[("PGPASSWORD", "y")]), "x");
        assert_eq!(of("postgres://ann@db/runs", &[("PGPASSWORD", "y")]), "y");
        assert_eq!(of("postgres://a%3Ab@db/runs", &[]), "from\\file");
        assert_eq!(of("postgres://db/runs", &[("USER", "ann")]), "last");
        assert_eq!(of("postgres://bob@db/runs", &[]), "");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let (found, ignored) = password("postgres://ann@db/runs", &[]);
        assert_eq!(found, None);
        assert!(ignored.unwrap().ends_with("other users may read it; run `chmod 600` on it"));
    }

    #[test]
    fn a_connection_over_a_network_is_verified_by_default() {
        let mode = |url: &str| read(url).ssl_mode();
        assert_eq!(mode("postgres://db.example/runs"), SslMode::VerifyFull);
        assert_eq!(mode("postgres://db.example/runs?sslmode=require"), SslMode::Require);
        assert_eq!(mode("postgres://db.example/runs?sslmode=require&sslrootcert=ca.pem"), SslMode::VerifyCa);
        assert_eq!(mode("postgres://localhost/runs"), SslMode::Prefer);
        assert_eq!(mode("postgres://127.0.0.1/runs?sslmode=verify-full"), SslMode::VerifyFull);
        assert_eq!(mode("postgres:///runs?host=/run&sslmode=require"), SslMode::Disable);
    }
}
