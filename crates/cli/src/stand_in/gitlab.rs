//! The stand-in for `glab`.

use clap::{Args, Parser, Subcommand};
use sandbox::remote::{Item, ItemChange, ItemKind, ItemState, Members, Project};
use serde_json::{Value, json};

use super::checkout::MergeMethod;
use super::draft::NewItem;
use super::json::AGENT;
use super::{CommandResult, Failure, Session, find, split, time};

/// Arguments of `glab`.
#[derive(Debug, Parser)]
#[command(name = "glab", version, disable_help_subcommand = true)]
pub struct Arguments {
    /// Repository
    #[arg(short = 'R', long = "repo", global = true)]
    repo: Option<String>,
    #[command(subcommand)]
    group: Group,
}

#[derive(Debug, Subcommand)]
enum Group {
    /// Merge requests
    #[command(subcommand, alias = "merge-request")]
    Mr(Command),
    /// Issues
    #[command(subcommand)]
    Issue(Command),
    /// The repository
    #[command(subcommand, alias = "project")]
    Repo(RepoCommand),
    /// Sign-in
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Version
    Version,
}

#[derive(Debug, Subcommand)]
enum RepoCommand {
    /// Shows the repository
    View {
        repository: Option<String>,
        #[arg(short = 'F', long)]
        output: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
enum AuthCommand {
    /// Shows the sign-in
    Status {
        #[arg(long)]
        hostname: Option<String>,
    },
}

/// Commands for merge requests and issues.
#[derive(Debug, Subcommand)]
enum Command {
    /// Creates one
    #[command(alias = "new")]
    Create(Box<CreateArguments>),
    /// Lists them
    #[command(alias = "ls")]
    List(ListArguments),
    /// Shows one
    #[command(alias = "show")]
    View {
        item: Option<String>,
        #[arg(short = 'F', long)]
        output: Option<String>,
        #[arg(short, long)]
        comments: bool,
    },
    /// Changes one
    Update(Box<UpdateArguments>),
    /// Adds a comment
    #[command(alias = "comment")]
    Note {
        item: Option<String>,
        #[arg(short, long)]
        message: String,
    },
    /// Closes one
    Close { item: Option<String> },
    /// Opens one again
    Reopen { item: Option<String> },
    /// Merges a merge request
    #[command(alias = "accept")]
    Merge(MergeArguments),
}

#[derive(Debug, Args)]
struct CreateArguments {
    #[arg(short, long)]
    title: Option<String>,
    #[arg(short, long)]
    description: Option<String>,
    #[arg(short = 'b', long)]
    target_branch: Option<String>,
    #[arg(short, long, alias = "head")]
    source_branch: Option<String>,
    #[arg(short, long)]
    fill: bool,
    #[arg(long, alias = "wip")]
    draft: bool,
    #[arg(short, long)]
    label: Vec<String>,
    #[arg(long)]
    reviewer: Vec<String>,
    #[arg(short, long)]
    assignee: Vec<String>,
    #[arg(short, long)]
    yes: bool,
    #[arg(long)]
    push: bool,
    #[arg(long)]
    no_editor: bool,
    #[arg(long)]
    remove_source_branch: bool,
    #[arg(long, alias = "squash-before-merge")]
    squash: bool,
}

#[derive(Debug, Args)]
struct ListArguments {
    #[arg(short = 'A', long)]
    all: bool,
    #[arg(short, long)]
    closed: bool,
    #[arg(short = 'M', long)]
    merged: bool,
    #[arg(short, long)]
    source_branch: Option<String>,
    #[arg(short, long)]
    target_branch: Option<String>,
    #[arg(short, long)]
    label: Vec<String>,
    #[arg(short = 'P', long, default_value_t = 30)]
    per_page: usize,
    #[arg(short = 'F', long)]
    output: Option<String>,
}

#[derive(Debug, Args)]
struct UpdateArguments {
    item: Option<String>,
    #[arg(short, long)]
    title: Option<String>,
    #[arg(short, long)]
    description: Option<String>,
    #[arg(long)]
    target_branch: Option<String>,
    #[arg(short, long)]
    label: Vec<String>,
    #[arg(short, long)]
    unlabel: Vec<String>,
    #[arg(long)]
    reviewer: Vec<String>,
    #[arg(short, long)]
    assignee: Vec<String>,
    #[arg(long, alias = "wip")]
    draft: bool,
    #[arg(short, long)]
    ready: bool,
}

#[derive(Debug, Args)]
struct MergeArguments {
    item: Option<String>,
    #[arg(short, long)]
    squash: bool,
    #[arg(short, long)]
    rebase: bool,
    #[arg(short = 'd', long)]
    remove_source_branch: bool,
    #[arg(short, long)]
    message: Option<String>,
    #[arg(short, long)]
    yes: bool,
}

/// Runs a command and returns its output.
pub(super) fn run(session: &Session, arguments: Arguments) -> CommandResult {
    let repo = arguments.repo.as_deref();
    let items = |kind| Ok::<_, Failure>(Items { session, project: session.project(repo)?, kind });
    match arguments.group {
        Group::Version => Ok(format!("glab {}\n", env!("CARGO_PKG_VERSION"))),
        Group::Auth(AuthCommand::Status { .. }) => {
            let host = session.project(None)?.host;
            Ok(format!(
                "{host}\n  ✓ Logged in to {host} as {AGENT}\n  ✓ Git operations for {host} configured to use https protocol.\n"
            ))
        }
        Group::Repo(RepoCommand::View { repository, output }) => {
            let project = session.project(repository.as_deref().or(repo))?;
            let json = json!({
                "default_branch": project.default_branch, "path_with_namespace": project.name, "web_url": project.url(),
            });
            match output.as_deref() {
                Some("json") => Ok(format!("{json}\n")),
                _ => Ok(format!("name:\t{}\ndescription:\t\n---\n", project.name)),
            }
        }
        Group::Mr(command) => items(ItemKind::ReviewRequest)?.run(command),
        Group::Issue(command) => items(ItemKind::Issue)?.run(command),
    }
}

/// The merge requests or the issues of a project.
struct Items<'a> {
    session: &'a Session,
    project: Project,
    kind: ItemKind,
}

impl Items<'_> {
    fn run(&self, command: Command) -> CommandResult {
        match command {
            Command::Create(arguments) => self.create(*arguments),
            Command::List(arguments) => self.list(&arguments),
            Command::View { item, output, comments } => {
                let item = self.find(item.as_deref())?;
                match output.as_deref() {
                    Some("json") => Ok(format!("{}\n", of_item(item))),
                    _ if comments => {
                        Ok(item.comments.iter().map(|comment| format!("{AGENT}\n{comment}\n\n")).collect())
                    }
                    _ => Ok(describe(item)),
                }
            }
            Command::Update(arguments) => self.update(*arguments),
            Command::Note { item, message } => {
                let change = ItemChange { comment: Some(message), ..ItemChange::default() };
                let item = self.change(item.as_deref(), change)?;
                Ok(format!("{}#note_{}\n", item.url, item.comments.len()))
            }
            Command::Close { item } => {
                let change = ItemChange { state: Some(ItemState::Closed), ..ItemChange::default() };
                Ok(format!("✓ Closed\n{}\n", self.change(item.as_deref(), change)?.url))
            }
            Command::Reopen { item } => {
                let change = ItemChange { state: Some(ItemState::Open), ..ItemChange::default() };
                Ok(format!("✓ Reopened\n{}\n", self.change(item.as_deref(), change)?.url))
            }
            Command::Merge(arguments) if self.kind == ItemKind::ReviewRequest => self.merge(&arguments),
            Command::Merge(_) => Err(Failure::Unsupported("this command of `glab issue`".to_owned())),
        }
    }

    fn find(&self, wanted: Option<&str>) -> Result<&Item, Failure> {
        find(&self.project, self.kind, wanted, &self.session.checkout())
    }

    fn change(&self, wanted: Option<&str>, change: ItemChange) -> Result<Item, Failure> {
        self.session.change(self.kind, self.find(wanted)?.number, change)
    }

    fn create(&self, arguments: CreateArguments) -> CommandResult {
        if arguments.push {
            return Err(Failure::Unsupported("`--push`".to_owned()));
        }
        let mut item = NewItem {
            title: arguments.title,
            body: arguments.description,
            head: arguments.source_branch,
            base: arguments.target_branch,
            fill: arguments.fill,
            is_draft: arguments.draft,
            labels: split(&arguments.label),
            reviewers: split(&arguments.reviewer),
            assignees: split(&arguments.assignee),
        };
        if self.kind == ItemKind::ReviewRequest {
            let not_pushed = |head: &str| format!("the source branch `{head}` is not on the remote; push it first");
            item.complete(&self.project, &self.session.checkout(), "not on any branch", not_pushed)?;
        }
        let incomplete = "--title and --description, or --fill, are required for non-interactive mode";
        let item = self.session.create(item.into_draft(self.kind, incomplete)?)?;
        Ok(format!("{}\n", describe_line(&item)))
    }

    fn list(&self, arguments: &ListArguments) -> CommandResult {
        let labels = split(&arguments.label);
        let state = match (arguments.closed, arguments.merged) {
            (true, _) => ItemState::Closed,
            (_, true) => ItemState::Merged,
            _ => ItemState::Open,
        };
        let is_wanted = |item: &&Item| {
            let draft = &item.draft;
            draft.kind == self.kind
                && (arguments.all || item.state == state)
                && arguments.source_branch.as_ref().is_none_or(|head| draft.head.as_ref() == Some(head))
                && arguments.target_branch.as_ref().is_none_or(|base| draft.base.as_ref() == Some(base))
                && labels.iter().all(|label| draft.labels.contains(label))
        };
        let items: Vec<&Item> = self.project.items.iter().rev().filter(is_wanted).take(arguments.per_page).collect();
        if arguments.output.as_deref() == Some("json") {
            return Ok(format!("{}\n", items.iter().map(|item| of_item(item)).collect::<Value>()));
        }
        let line = |item: &&Item| {
            let (sign, draft) = (sign(item), &item.draft);
            let branches = match (&draft.base, &draft.head) {
                (Some(base), Some(head)) => format!("\t({base}) ← ({head})"),
                _ => String::new(),
            };
            format!("{sign}{}\t{}{sign}{}\t{}{branches}\n", item.number, self.project.name, item.number, draft.title)
        };
        Ok(items.iter().map(line).collect())
    }

    fn update(&self, arguments: UpdateArguments) -> CommandResult {
        let add = |names: &[String]| Members { add: split(names), remove: Vec::new() };
        let change = ItemChange {
            title: arguments.title,
            body: arguments.description,
            base: arguments.target_branch,
            is_draft: (arguments.draft || arguments.ready).then_some(arguments.draft),
            labels: Members { add: split(&arguments.label), remove: split(&arguments.unlabel) },
            reviewers: add(&arguments.reviewer),
            assignees: add(&arguments.assignee),
            ..ItemChange::default()
        };
        Ok(format!("{}\n", self.change(arguments.item.as_deref(), change)?.url))
    }

    fn merge(&self, arguments: &MergeArguments) -> CommandResult {
        let item = self.find(arguments.item.as_deref())?;
        let method = match (arguments.squash, arguments.rebase) {
            (true, _) => MergeMethod::Squash,
            (_, true) => MergeMethod::Rebase,
            _ => MergeMethod::Merge,
        };
        let (head, base) = (item.draft.head.clone().unwrap_or_default(), item.draft.base.clone().unwrap_or_default());
        let usual = format!("Merge branch '{head}' into '{base}'");
        let checkout = self.session.checkout();
        checkout.merge(item, method, arguments.message.as_deref().unwrap_or(&usual))?;
        let change = ItemChange { state: Some(ItemState::Merged), ..ItemChange::default() };
        let item = self.session.change(self.kind, item.number, change)?;
        if arguments.remove_source_branch {
            checkout.delete(&head);
        }
        Ok(format!("✓ Merged\n{}\n", describe_line(&item)))
    }
}

/// Returns the character before the number.
fn sign(item: &Item) -> char {
    if item.draft.kind == ItemKind::Issue { '#' } else { '!' }
}

fn describe_line(item: &Item) -> String {
    let head = item.draft.head.as_ref().map_or_else(String::new, |head| format!(" ({head})"));
    format!("{}{} {}{head}\n {}", sign(item), item.number, item.draft.title, item.url)
}

fn state(item: &Item) -> &'static str {
    match item.state {
        ItemState::Open => "opened",
        ItemState::Closed => "closed",
        ItemState::Merged => "merged",
    }
}

fn describe(item: &Item) -> String {
    let draft = &item.draft;
    format!(
        "title:\t{}\nstate:\t{}\nauthor:\t{AGENT}\nlabels:\t{}\nassignees:\t{}\nreviewers:\t{}\nnumber:\t{}\nurl:\t{}\n--\n{}\n",
        draft.title,
        state(item),
        draft.labels.join(", "),
        draft.assignees.join(", "),
        draft.reviewers.join(", "),
        item.number,
        item.url,
        draft.body
    )
}

fn of_item(item: &Item) -> Value {
    let draft = &item.draft;
    let people = |names: &[String]| names.iter().map(|name| json!({ "username": name })).collect::<Vec<_>>();
    json!({
        "assignees": people(&draft.assignees),
        "author": { "username": AGENT },
        "created_at": time(item.created),
        "description": draft.body,
        "draft": draft.is_draft,
        "iid": item.number,
        "labels": draft.labels,
        "reviewers": people(&draft.reviewers),
        "source_branch": draft.head,
        "state": state(item),
        "target_branch": draft.base,
        "title": draft.title,
        "updated_at": time(item.updated),
        "web_url": item.url,
    })
}
