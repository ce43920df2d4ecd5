//! The service of a trial: keeps the review requests and issues that its agent creates with the stand-in programs. They
//! are kept in this process, so the agent cannot edit them directly, and each of its requests is limited.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::{ForgeKind, ReviewRequest};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::address;
use super::protocol::{Draft, Item, ItemChange, ItemKind, ItemState, MAX_REQUEST, Program, Project, Request, Response};
use super::source::RemoteSource;
use crate::git_state;

/// Maximum number of items, and of recorded unsupported commands, in a trial.
const MOST: usize = 200;

/// Maximum total size of the texts of a trial, in bytes.
const MOST_TEXT: usize = 8 << 20;

/// Maximum length of a recorded command, in characters.
const LONGEST: usize = 200;

/// Time within which a program must send its request and read the answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The service of one trial.
#[derive(Debug)]
pub(crate) struct Service {
    shared: Arc<Shared>,
    serving: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    kind: Option<ForgeKind>,
    host: Option<String>,
    project: String,
    default_branch: Option<String>,
    /// The bare copy. A review request can only use its branches.
    copy: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    items: Vec<Item>,
    unsupported: Vec<String>,
    /// Total size of the accepted texts.
    text: usize,
}

impl Service {
    pub(super) fn new(source: &RemoteSource, copy: &Path) -> Self {
        let (kind, host, project) = address::project(&source.address);
        let (default_branch, copy) = (source.default_branch.clone(), copy.to_owned());
        let shared = Shared { kind, host, project, default_branch, copy, state: Mutex::default() };
        Self { shared: Arc::new(shared), serving: Mutex::default() }
    }

    /// Listens at `socket`, which must not exist yet, until the service is dropped.
    pub(super) fn listen(&self, socket: &Path) -> io::Result<()> {
        let (_folder, short) = crate::supervise::short_path(socket)?;
        let listener = UnixListener::bind(short)?;
        let shared = Arc::clone(&self.shared);
        let serving = tokio::spawn(async move {
            // One at a time: a program that does not read its answer delays only its own trial.
            while let Ok((stream, _)) = listener.accept().await {
                let _ = tokio::time::timeout(TIMEOUT, serve(stream, &shared)).await;
            }
        });
        self.serving.lock().unwrap_or_else(PoisonError::into_inner).push(serving);
        Ok(())
    }

    /// Returns the review requests.
    pub(super) fn review_requests(&self) -> Vec<ReviewRequest> {
        let state = self.shared.lock();
        let requests = state.items.iter().filter(|item| item.draft.kind == ItemKind::ReviewRequest);
        let convert = |item: &Item| ReviewRequest {
            number: item.number,
            head: item.draft.head.clone(),
            base: item.draft.base.clone(),
            url: Some(item.url.clone()),
            open: item.state == ItemState::Open,
            draft: Some(item.draft.is_draft),
            title: Some(item.draft.title.clone()),
            body: Some(item.draft.body.clone()),
        };
        requests.map(convert).collect()
    }

    /// Returns the commands that the stand-ins do not support.
    pub(super) fn unsupported(&self) -> Vec<String> {
        self.shared.lock().unsupported.clone()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let serving = self.serving.get_mut().unwrap_or_else(PoisonError::into_inner);
        serving.iter().for_each(JoinHandle::abort);
    }
}

async fn serve(stream: UnixStream, shared: &Shared) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut line = Vec::new();
    BufReader::new(reading.take(MAX_REQUEST as u64)).read_until(b'\n', &mut line).await?;
    let response = match serde_json::from_slice(&line) {
        Ok(request) => shared.answer(request, line.len()),
        Err(error) => Response::Refused { reason: format!("the request cannot be read: {error}") },
    };
    let mut answer = serde_json::to_vec(&response)?;
    answer.push(b'\n');
    writing.write_all(&answer).await
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: Request, size: usize) -> Response {
        let answered = match request {
            Request::Look { program } => self.project(program).map(Response::Project),
            Request::Create { program, draft } => self.create(program, draft, size).map(Response::Item),
            Request::Change { kind, number, change } => self.change(kind, number, &change, size).map(Response::Item),
            Request::Unsupported { command } => {
                let mut state = self.lock();
                if state.unsupported.len() < MOST {
                    state.unsupported.push(command.chars().take(LONGEST).collect());
                }
                Ok(Response::Recorded)
            }
        };
        answered.unwrap_or_else(|reason| Response::Refused { reason })
    }

    fn project(&self, program: Program) -> Result<Project, String> {
        let (host, items) = (self.host(program)?, self.lock().items.clone());
        Ok(Project { host, name: self.project.clone(), default_branch: self.default_branch.clone(), items })
    }

    /// Returns the host at which `program` finds the project.
    fn host(&self, program: Program) -> Result<String, String> {
        let (service, other, usual) = match program {
            Program::Gh => ("GitHub", ForgeKind::GitLab, "github.com"),
            Program::Glab => ("GitLab", ForgeKind::GitHub, "gitlab.com"),
        };
        if self.kind == Some(other) {
            return Err(format!("none of the git remotes configured for this repository point to a {service} host"));
        }
        Ok(self.host.clone().unwrap_or_else(|| usual.to_owned()))
    }

    fn create(&self, program: Program, draft: Draft, size: usize) -> Result<Item, String> {
        let host = self.host(program)?;
        if draft.title.trim().is_empty() {
            return Err("title can't be blank".to_owned());
        }
        let is_review = draft.kind == ItemKind::ReviewRequest;
        if is_review {
            self.check_branches(&draft)?;
        }
        let mut state = self.lock();
        let is_same = |item: &&Item| {
            item.state == ItemState::Open
                && (item.draft.kind, &item.draft.head, &item.draft.base) == (draft.kind, &draft.head, &draft.base)
        };
        if let Some(item) = state.items.iter().find(is_same).filter(|_| is_review) {
            let name = |branch: &Option<String>| branch.clone().unwrap_or_default();
            let (head, base) = (name(&draft.head), name(&draft.base));
            return Err(format!(
                "a pull request for branch \"{head}\" into branch \"{base}\" already exists:\n{}",
                item.url
            ));
        }
        if state.items.len() >= MOST {
            return Err(format!("the stand-in holds at most {MOST} review requests and issues"));
        }
        state.take(size)?;
        // GitHub numbers both together.
        let counts = |item: &&Item| program == Program::Gh || item.draft.kind == draft.kind;
        let number = state.items.iter().filter(counts).count() as u64 + 1;
        let kind = match (program, is_review) {
            (Program::Gh, true) => "pull",
            (Program::Gh, false) => "issues",
            (Program::Glab, true) => "-/merge_requests",
            (Program::Glab, false) => "-/issues",
        };
        let url = format!("https://{host}/{}/{kind}/{number}", self.project);
        let now = now();
        let comments = Vec::new();
        let item = Item { number, url, state: ItemState::Open, created: now, updated: now, comments, draft };
        state.items.push(item.clone());
        Ok(item)
    }

    /// Checks that the branches of a review request exist on the remote.
    fn check_branches(&self, draft: &Draft) -> Result<(), String> {
        let (Some(head), Some(base)) = (&draft.head, &draft.base) else {
            return Err("a review request needs a head and a base branch".to_owned());
        };
        for (what, branch) in [("head", head), ("base", base)] {
            if git_state::resolve(&self.copy, &format!("refs/heads/{branch}")).is_none() {
                return Err(format!("the {what} branch `{branch}` is not on the remote"));
            }
        }
        if head == base {
            return Err(format!("head branch \"{head}\" is the same as base branch \"{base}\""));
        }
        Ok(())
    }

    fn change(&self, kind: ItemKind, number: u64, change: &ItemChange, size: usize) -> Result<Item, String> {
        let mut state = self.lock();
        state.take(size)?;
        let wanted = |item: &&mut Item| (item.draft.kind, item.number) == (kind, number);
        let item = state.items.iter_mut().find(wanted).ok_or_else(|| format!("number {number} was not found"))?;
        let Draft { title, body, base, is_draft, labels, reviewers, assignees, .. } = &mut item.draft;
        let set = |text: &mut String, new: &Option<String>| new.iter().for_each(|new| text.clone_from(new));
        set(title, &change.title);
        set(body, &change.body);
        if change.base.is_some() {
            base.clone_from(&change.base);
        }
        *is_draft = change.is_draft.unwrap_or(*is_draft);
        change.labels.apply(labels);
        change.reviewers.apply(reviewers);
        change.assignees.apply(assignees);
        item.comments.extend(change.comment.clone());
        match change.state {
            Some(_) if item.state == ItemState::Merged => return Err(format!("number {number} was already merged")),
            Some(new) => item.state = new,
            None => {}
        }
        item.updated = now();
        Ok(item.clone())
    }
}

impl State {
    /// Counts the text of a request.
    fn take(&mut self, size: usize) -> Result<(), String> {
        self.text += size;
        match self.text > MOST_TEXT {
            true => Err(format!("the stand-in holds at most {} MiB of text", MOST_TEXT >> 20)),
            false => Ok(()),
        }
    }
}

/// Returns the current time, in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::protocol::ask;
    use super::*;

    /// A service with a copy whose branches are `main` and `feat`, and its socket.
    fn service(address: &str) -> (tempfile::TempDir, Service, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let heads = folder.path().join("refs/heads");
        fs::create_dir_all(&heads).unwrap();
        for branch in ["main", "feat"] {
            fs::write(heads.join(branch), format!("{}\n", "a".repeat(40))).unwrap();
        }
        let service = Service::new(&RemoteSource::of_test(address, "main"), folder.path());
        let socket = folder.path().join("service");
        service.listen(&socket).unwrap();
        (folder, service, socket)
    }

    fn draft(kind: ItemKind, title: &str, head: &str) -> Draft {
        let is_review = kind == ItemKind::ReviewRequest;
        Draft {
            kind,
            title: title.into(),
            body: "b".into(),
            head: is_review.then(|| head.into()),
            base: is_review.then(|| "main".into()),
            is_draft: false,
            labels: Vec::new(),
            reviewers: Vec::new(),
            assignees: Vec::new(),
        }
    }

    async fn asked(socket: &Path, request: Request) -> Result<Item, String> {
        let socket = socket.to_owned();
        match tokio::task::spawn_blocking(move || ask(&socket, &request)).await.unwrap().unwrap() {
            Response::Item(item) => Ok(item),
            Response::Refused { reason } => Err(reason),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_review_request_needs_a_branch_that_was_pushed() {
        let (_folder, service, socket) = service("git@github.com:o/r.git");
        let create = |head: &str| {
            let draft = draft(ItemKind::ReviewRequest, "t", head);
            asked(&socket, Request::Create { program: Program::Gh, draft })
        };
        for (head, part) in
            [("ghost", "is not on the remote"), ("../main", "is not on the remote"), ("main", "the same")]
        {
            assert!(create(head).await.unwrap_err().contains(part), "{head}");
        }
        assert_eq!(create("feat").await.unwrap().url, "https://github.com/o/r/pull/1");
        assert!(create("feat").await.unwrap_err().contains("already exists"));
        let requests = service.review_requests();
        assert_eq!((requests.len(), requests[0].head.as_deref(), requests[0].open), (1, Some("feat"), true));
        let closed = ItemChange { state: Some(ItemState::Merged), ..ItemChange::default() };
        let kind = ItemKind::ReviewRequest;
        asked(&socket, Request::Change { kind, number: 1, change: closed.clone() }).await.unwrap();
        assert!(!service.review_requests()[0].open);
        assert!(
            asked(&socket, Request::Change { kind, number: 1, change: closed }).await.unwrap_err().contains("merged")
        );
    }

    #[tokio::test]
    async fn numbers_are_those_of_the_service() {
        for (program, numbers) in [(Program::Gh, [1, 2]), (Program::Glab, [1, 1])] {
            let (_folder, _service, socket) = service("/srv/r.git");
            for (kind, number) in [ItemKind::Issue, ItemKind::ReviewRequest].into_iter().zip(numbers) {
                let draft = draft(kind, "t", "feat");
                assert_eq!(asked(&socket, Request::Create { program, draft }).await.unwrap().number, number);
            }
        }
        let (_folder, _service, socket) = service("git@gitlab.com:o/r.git");
        let draft = draft(ItemKind::Issue, "t", "");
        let refused = asked(&socket, Request::Create { program: Program::Gh, draft }).await.unwrap_err();
        assert!(refused.contains("point to a GitHub host"), "{refused}");
    }

    #[tokio::test]
    async fn an_agent_cannot_fill_the_memory() {
        let (_folder, service, socket) = service("/srv/r.git");
        for number in 0..=MOST {
            let draft = draft(ItemKind::Issue, "t", "");
            let created = asked(&socket, Request::Create { program: Program::Gh, draft }).await;
            assert_eq!(created.is_ok(), number < MOST);
        }
        let comment = Some("x".repeat(MAX_REQUEST / 2));
        let change = ItemChange { comment, ..ItemChange::default() };
        let mut refused = 0;
        for _ in 0..40 {
            let change = change.clone();
            refused += usize::from(
                asked(&socket, Request::Change { kind: ItemKind::Issue, number: 1, change }).await.is_err(),
            );
        }
        assert!(refused > 0 && service.shared.lock().items[0].comments.len() < 40);
        let huge = ItemChange { comment: Some("x".repeat(2 * MAX_REQUEST)), ..ItemChange::default() };
        let socket = socket.clone();
        let answer = tokio::task::spawn_blocking(move || {
            ask(&socket, &Request::Change { kind: ItemKind::Issue, number: 1, change: huge })
        });
        assert!(!matches!(answer.await.unwrap(), Ok(Response::Item(_))));
    }
}
