//! The stand-ins for `gh` and `glab` in a trial with its own remote. They accept the arguments that agents use, send
//! requests to the trial's service, and print what the real programs would print.

mod checkout;
mod draft;
mod github;
mod github_api;
mod gitlab;
mod json;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use sandbox::remote::{Draft, Item, ItemChange, ItemKind, ItemState, Program, Project, Request, Response};

use self::checkout::Checkout;

/// Output of a command on stdout, or the reason why it failed.
type CommandResult = Result<String, Failure>;

/// Failure of a command.
#[derive(Debug)]
enum Failure {
    /// The service or the checkout refused the command, with this message for stderr.
    Refused(String),
    /// The stand-in does not support this part of the command.
    Unsupported(String),
}

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }
}

/// Connection of one command to its trial's service.
struct Session {
    program: Program,
    socket: PathBuf,
}

impl Session {
    fn ask(&self, request: &Request) -> Result<Response, Failure> {
        match sandbox::remote::ask(&self.socket, request) {
            Ok(Response::Refused { reason }) => Err(Failure::Refused(reason)),
            Ok(response) => Ok(response),
            Err(error) => Err(Failure::Refused(format!("cannot reach the service: {error}"))),
        }
    }

    /// Returns the project, unless `named` is a different one.
    fn project(&self, named: Option<&str>) -> Result<Project, Failure> {
        let Response::Project(project) = self.ask(&Request::Look { program: self.program })? else {
            return Err(unexpected());
        };
        match named.map(|named| named.trim_end_matches(".git").trim_matches('/')) {
            Some(named) if named != project.name && !named.ends_with(&format!("/{}", project.name)) => {
                Err(Failure::Refused(format!("could not resolve to a repository with the name '{named}'")))
            }
            _ => Ok(project),
        }
    }

    fn create(&self, draft: Draft) -> Result<Item, Failure> {
        self.item(&Request::Create { program: self.program, draft })
    }

    fn change(&self, kind: ItemKind, number: u64, change: ItemChange) -> Result<Item, Failure> {
        self.item(&Request::Change { kind, number, change })
    }

    fn item(&self, request: &Request) -> Result<Item, Failure> {
        match self.ask(request)? {
            Response::Item(item) => Ok(item),
            _ => Err(unexpected()),
        }
    }

    /// Returns the agent's repository, and the remote next to the programs.
    fn checkout(&self) -> Checkout {
        let sandbox = self.socket.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        Checkout::new(sandbox.join("remote.git"))
    }
}

fn unexpected() -> Failure {
    Failure::Refused("the service sent an unexpected answer".to_owned())
}

/// Runs the stand-in that is given in `raw`, all arguments of this program.
pub fn main(raw: &[OsString]) -> ExitCode {
    let words: Vec<String> = raw.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let [_, _, name, socket, arguments @ ..] = words.as_slice() else { return ExitCode::FAILURE };
    let program = if name == "glab" { Program::Glab } else { Program::Gh };
    let session = Session { program, socket: PathBuf::from(socket) };
    let typed = std::iter::once(name).chain(arguments);
    let result = match program {
        Program::Gh => parse::<github::Arguments>(typed).and_then(|arguments| github::run(&session, arguments)),
        Program::Glab => parse::<gitlab::Arguments>(typed).and_then(|arguments| gitlab::run(&session, arguments)),
    };
    let message = match result {
        Ok(text) => {
            // The agent closed the pipe, so the output is not read.
            let _ = std::io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(Failure::Refused(message)) => message,
        Err(Failure::Unsupported(part)) => {
            let command = std::iter::once(name.as_str()).chain(arguments.iter().map(String::as_str));
            let command = command.collect::<Vec<_>>().join(" ");
            let _ = session.ask(&Request::Unsupported { command });
            format!("{part} is not supported: this sandbox has a stand-in for `{name}` with its most common commands")
        }
    };
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::FAILURE
}

/// Parses the arguments. Unknown commands and options are reported as not supported.
fn parse<'a, A: Parser>(words: impl Iterator<Item = &'a String>) -> Result<A, Failure> {
    use clap::error::ErrorKind;
    A::try_parse_from(words).map_err(|error| match error.kind() {
        ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument => {
            let context = [clap::error::ContextKind::InvalidSubcommand, clap::error::ContextKind::InvalidArg];
            let named = context.into_iter().find_map(|kind| error.get(kind)).map(ToString::to_string);
            Failure::Unsupported(format!("`{}`", named.unwrap_or_default()))
        }
        _ => Failure::Refused(error.to_string()),
    })
}

/// Returns the words in comma-separated lists.
fn split(lists: &[String]) -> Vec<String> {
    let words = lists.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Returns a text: as given, or the content of a file; `-` is stdin.
fn text_of(text: Option<String>, file: Option<&str>) -> Result<Option<String>, Failure> {
    let Some(file) = file else { return Ok(text) };
    let read = if file == "-" { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(file) };
    read.map(Some).map_err(|error| Failure::Refused(format!("open {file}: {error}")))
}

/// Returns the item that `wanted` identifies: a number, a URL, or the branch of a review request. Without `wanted`,
/// returns the review request of the checked-out branch.
fn find<'p>(
    project: &'p Project,
    kind: ItemKind,
    wanted: Option<&str>,
    checkout: &Checkout,
) -> Result<&'p Item, Failure> {
    let branch = match wanted {
        Some(wanted) => wanted.to_owned(),
        None => {
            checkout.branch().ok_or_else(|| Failure::new("could not determine current branch: not on any branch"))?
        }
    };
    let number = branch.trim_start_matches(['#', '!']).parse::<u64>().ok();
    let is_wanted = |item: &&Item| {
        item.draft.kind == kind
            && (Some(item.number) == number || item.url == branch || item.draft.head.as_deref() == Some(&branch))
    };
    let of_kind = project.items.iter().filter(is_wanted);
    // An open request takes precedence over older ones of the same branch.
    of_kind.max_by_key(|item| (item.state == ItemState::Open, item.number)).ok_or_else(|| match kind {
        ItemKind::ReviewRequest if wanted.is_none() || number.is_none() => {
            Failure::Refused(format!("no pull requests found for branch \"{branch}\""))
        }
        _ => Failure::Refused(format!("could not resolve to an item with the number of {branch}")),
    })
}

/// Returns a time in the format that services use.
fn time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.unwrap_or_default().to_string()
}
