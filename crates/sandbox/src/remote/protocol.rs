//! Requests from the stand-in programs to the service of a trial, and its answers: one line of JSON each.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Maximum size of a request, in bytes.
pub(super) const MAX_REQUEST: usize = 1 << 20;

/// Maximum number of bytes of an answer that a program reads.
const MAX_RESPONSE: u64 = 64 << 20;

/// Time after which a program stops waiting for an answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Program that a stand-in replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// `gh`.
    Gh,
    /// `glab`.
    Glab,
}

/// A request to the service.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// Asks for the project with everything in it.
    Look {
        /// Program that asks.
        program: Program,
    },
    /// Creates a review request or an issue.
    Create {
        /// Program that asks.
        program: Program,
        /// Description of it.
        draft: Draft,
    },
    /// Changes a review request or an issue.
    Change {
        /// Kind of the item.
        kind: ItemKind,
        /// Its number.
        number: u64,
        /// Changes to make.
        change: ItemChange,
    },
    /// Records a command that the stand-in does not support.
    Unsupported {
        /// Command, as the agent wrote it.
        command: String,
    },
}

/// An answer of the service.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "response", rename_all = "kebab-case")]
pub enum Response {
    /// The project.
    Project(Project),
    /// The created or changed item.
    Item(Item),
    /// The request was recorded.
    Recorded,
    /// The service refused the request.
    Refused {
        /// Reason.
        reason: String,
    },
}

/// Project at the service.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Project {
    /// Host of the service.
    pub host: String,
    /// Name, such as `owner/name`.
    pub name: String,
    /// Default branch, unless the repository is empty.
    pub default_branch: Option<String>,
    /// Review requests and issues, oldest first.
    pub items: Vec<Item>,
}

impl Project {
    /// Returns the URL of its web page.
    pub fn url(&self) -> String {
        format!("https://{}/{}", self.host, self.name)
    }
}

/// Kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// A pull request or a merge request.
    ReviewRequest,
    /// An issue.
    Issue,
}

/// State of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemState {
    /// It is open.
    Open,
    /// It was closed.
    Closed,
    /// It was merged.
    Merged,
}

/// A review request or an issue to create.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Draft {
    /// Kind.
    pub kind: ItemKind,
    /// Title.
    pub title: String,
    /// Description.
    pub body: String,
    /// Branch to merge.
    pub head: Option<String>,
    /// Target branch.
    pub base: Option<String>,
    /// True for a review request that is not ready for review.
    pub is_draft: bool,
    /// Labels.
    pub labels: Vec<String>,
    /// Requested reviewers.
    pub reviewers: Vec<String>,
    /// Assignees.
    pub assignees: Vec<String>,
}

/// A review request or an issue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Item {
    /// Number.
    pub number: u64,
    /// URL of its web page.
    pub url: String,
    /// State.
    pub state: ItemState,
    /// Time of its creation, in seconds since 1970.
    pub created: u64,
    /// Time of the last change, in seconds since 1970.
    pub updated: u64,
    /// Comments, oldest first.
    pub comments: Vec<String>,
    /// Current description.
    pub draft: Draft,
}

/// Changes to an item. Absent fields leave it unchanged.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemChange {
    /// New title.
    pub title: Option<String>,
    /// New description.
    pub body: Option<String>,
    /// New target branch.
    pub base: Option<String>,
    /// New state.
    pub state: Option<ItemState>,
    /// True if the item is not ready for review.
    pub is_draft: Option<bool>,
    /// Comment to add.
    pub comment: Option<String>,
    /// Labels to add and to remove.
    pub labels: Members,
    /// Reviewers to add and to remove.
    pub reviewers: Members,
    /// Assignees to add and to remove.
    pub assignees: Members,
}

/// Changes to a list of names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Members {
    /// Names to add.
    pub add: Vec<String>,
    /// Names to remove.
    pub remove: Vec<String>,
}

impl Members {
    /// Applies the changes.
    pub(super) fn apply(&self, names: &mut Vec<String>) {
        names.retain(|name| !self.remove.contains(name));
        for name in &self.add {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
}

/// Sends a request to the service at `socket`, and returns its answer.
///
/// # Errors
/// Returns an error if the service cannot be reached, or its answer cannot be parsed.
pub fn ask(socket: &Path, request: &Request) -> io::Result<Response> {
    let (_folder, short) = crate::supervise::short_path(socket)?;
    let mut stream = UnixStream::connect(short)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream.take(MAX_RESPONSE)).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}
