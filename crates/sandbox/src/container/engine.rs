//! Runs commands of a container engine.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};

use crate::Host;
use crate::supervise::error_message;

/// Time limit for a command of the engine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Limit that Podman sets on the number of the user's processes. Each container also has its own limit.
const MOST_PROCESSES: u64 = 16_384;

/// The user's variables that the engine needs to find its daemon and its files.
const NEEDED: [&str; 10] = [
    "PATH",
    "HOME",
    "USER",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "TMPDIR",
    "LANG",
];

/// Prefixes of further variables that the engine needs.
const NEEDED_STARTS: [&str; 3] = ["DOCKER_", "CONTAINER_", "CONTAINERS_"];

/// A container engine on this machine.
#[derive(Debug)]
pub(super) struct Engine {
    /// Name of the program.
    pub(super) name: &'static str,
    pub(super) program: PathBuf,
    /// Environment of the program.
    pub(super) env: BTreeMap<String, String>,
}

/// Output of the engine.
pub(super) struct Answer {
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Engine {
    /// Finds the engine on the user's `PATH`.
    pub(super) fn find(name: &'static str, host: &Host) -> Result<Self, String> {
        let program = host
            .find_program(name)
            .ok_or_else(|| format!("`{name}` is not on the PATH: install it, or use `isolated` sandboxes"))?;
        let is_needed = |variable: &str| {
            NEEDED.contains(&variable) || NEEDED_STARTS.iter().any(|start| variable.starts_with(start))
        };
        let variables = host.env.iter().filter(|(variable, _)| is_needed(variable));
        let mut env: BTreeMap<String, String> =
            variables.map(|(variable, value)| (variable.clone(), value.clone())).collect();
        // Without its own home, the engine would look for its files in that of the container.
        let home = || host.home.as_ref().map(|home| home.to_string_lossy().into_owned());
        for variable in ["PATH", "HOME"] {
            let value = if variable == "HOME" { home().unwrap_or_else(|| "/".to_owned()) } else { String::new() };
            env.entry(variable.to_owned()).or_insert(value);
        }
        Ok(Self { name, program, env })
    }

    /// Returns its version and its path.
    pub(super) fn describe(&self) -> String {
        let answer = self.ask(&["--version"]).map(|answer| answer.stdout).unwrap_or_default();
        let version = answer.split_once("version ").map_or("unknown", |(_, rest)| rest.trim());
        let version = version.split([',', ' ', '\n']).next().unwrap_or(version);
        format!("version {version} at {}", self.program.display())
    }

    /// Checks that the image is on this machine. It is not pulled automatically: the first trial could take minutes,
    /// and the user may not have checked the image.
    pub(super) fn check_image(&self, image: &str) -> Result<(), String> {
        let name = self.name;
        match self.ask(&["image", "inspect", "--format", "{{.Id}}", image]) {
            Ok(_) => Ok(()),
            Err(reason) if reason.to_lowercase().contains("no such image") || reason.contains("image not known") => {
                Err(format!("the image `{image}` is not on this machine: get it with `{name} pull {image}`"))
            }
            Err(reason) => Err(reason),
        }
    }

    /// Returns the options that make container processes run as the user of this process.
    pub(super) fn user_options(&self) -> Result<Vec<String>, String> {
        let own = format!("{}:{}", nix::unistd::geteuid(), nix::unistd::getegid());
        let is_rootless = self.is_rootless()?;
        if self.name == "docker" {
            // In a rootless container, root is the user of this process.
            let user = if is_rootless { "0:0".to_owned() } else { own };
            return Ok(vec!["--user".to_owned(), user]);
        }
        let mut options = vec!["--http-proxy=false", "--read-only-tmpfs=false", "--user", &own];
        if is_rootless {
            options.extend(["--userns", "keep-id"]);
        }
        let mut options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        // Podman requests more processes than some systems allow. The limit counts all processes of the user.
        let most = getrlimit(Resource::RLIMIT_NPROC).map_or(MOST_PROCESSES, |(_, hard)| hard.min(MOST_PROCESSES));
        options.extend(["--ulimit".to_owned(), format!("nproc={most}:{most}")]);
        Ok(options)
    }

    /// Returns `true` if it runs without root.
    ///
    /// # Errors
    /// Returns the reason if it does not work.
    pub(super) fn is_rootless(&self) -> Result<bool, String> {
        Ok(match self.name {
            "docker" => self.ask(&["info", "--format", "{{.SecurityOptions}}"])?.stdout.contains("rootless"),
            _ => self.ask(&["info", "--format", "{{.Host.Security.Rootless}}"])?.stdout.contains("true"),
        })
    }

    /// Returns the names of all containers with this label, and the values of the label.
    pub(super) fn labelled(&self, label: &str) -> Result<Vec<(String, String)>, String> {
        let mut names = self.names(&format!("label={label}"))?;
        // The container of a network comes after the one that uses it. Podman refuses to remove it first.
        names.sort_unstable();
        let format = format!("{{{{index .Config.Labels \"{label}\"}}}}");
        let value = |name: &str| {
            // The container may have been removed in the meantime.
            let answer = self.ask(&["container", "inspect", "--format", &format, name]).ok()?;
            Some((name.to_owned(), answer.stdout.trim().to_owned()))
        };
        Ok(names.iter().filter_map(|name| value(name)).collect())
    }

    /// Returns the names of all containers that match `filter`.
    fn names(&self, filter: &str) -> Result<Vec<String>, String> {
        let listed = self.ask(&["ps", "--all", "--filter", filter, "--format", "{{.Names}}"])?.stdout;
        Ok(listed.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// Removes a container with its processes, if it exists.
    pub(super) fn remove(&self, name: &str) -> Result<(), String> {
        let removed = self.ask(&["rm", "--force", "--volumes", name]);
        // Its supervisor may be removing it too.
        let is_gone =
            || self.names(&format!("name={name}")).is_ok_and(|names| !names.iter().any(|other| other == name));
        removed.map(drop).or_else(|reason| if is_gone() { Ok(()) } else { Err(reason) })
    }

    /// Checks that the engine works.
    ///
    /// # Errors
    /// Returns the reason if it does not.
    pub(super) fn check(&self) -> Result<(), String> {
        self.ask(&["version"]).map(drop)
    }

    /// Runs a command of the engine, and returns its output.
    ///
    /// # Errors
    /// Returns the last line of the error message, or the reason why the engine could not answer.
    pub(super) fn ask(&self, args: &[&str]) -> Result<Answer, String> {
        let name = self.name;
        let failed = |error: std::io::Error| format!("`{name}` cannot be started: {error}");
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().envs(&self.env).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (sender, answers) = mpsc::channel();
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
            child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        ];
        thread::spawn(move || {
            let mut read = streams.map(|stream| {
                stream.map(|stream| {
                    thread::spawn(move || {
                        let mut bytes = Vec::new();
                        let _ = stream.take(1 << 20).read_to_end(&mut bytes);
                        String::from_utf8_lossy(&bytes).into_owned()
                    })
                })
            });
            let texts = read.each_mut().map(|text| text.take().and_then(|text| text.join().ok()).unwrap_or_default());
            let _ = sender.send(texts);
        });
        let Ok([stdout, stderr]) = answers.recv_timeout(TIMEOUT) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("`{name}` did not answer within {} s", TIMEOUT.as_secs()));
        };
        if child.wait().map_err(failed)?.success() {
            return Ok(Answer { stdout, stderr });
        }
        Err(error_message(&stderr).unwrap_or("it failed without an error message").to_owned())
    }
}
