//! The stand-in for `gh`.

use clap::{Args, Parser, Subcommand};
use sandbox::remote::{Item, ItemChange, ItemKind, ItemState, Members, Project};

use super::checkout::MergeMethod;
use super::draft::NewItem;
use super::json::{AGENT, of_item, of_project, print, select, state};
use super::{CommandResult, Failure, Session, find, github_api, split, text_of, time};

/// Arguments of `gh`.
#[derive(Debug, Parser)]
#[command(name = "gh", version, disable_help_subcommand = true)]
pub struct Arguments {
    /// Repository
    #[arg(short = 'R', long = "repo", global = true)]
    repo: Option<String>,
    #[command(subcommand)]
    group: Group,
}

#[derive(Debug, Subcommand)]
enum Group {
    /// Pull requests
    #[command(subcommand)]
    Pr(Command),
    /// Issues
    #[command(subcommand)]
    Issue(Command),
    /// The repository
    #[command(subcommand)]
    Repo(RepoCommand),
    /// Sign-in
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Requests to the API
    Api(github_api::ApiArguments),
    /// Version
    Version,
}

#[derive(Debug, Subcommand)]
enum RepoCommand {
    /// Shows the repository
    View {
        repository: Option<String>,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Debug, Subcommand)]
enum AuthCommand {
    /// Shows the sign-in
    Status {
        #[arg(long)]
        hostname: Option<String>,
    },
    /// Lets git use the sign-in
    SetupGit,
}

/// Commands for pull requests and issues.
#[derive(Debug, Subcommand)]
enum Command {
    /// Creates one
    #[command(alias = "new")]
    Create(Box<CreateArguments>),
    /// Lists them
    #[command(alias = "ls")]
    List(ListArguments),
    /// Shows one
    View {
        item: Option<String>,
        #[arg(short, long)]
        comments: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Changes one
    Edit(Box<EditArguments>),
    /// Adds a comment
    Comment {
        item: Option<String>,
        #[arg(short, long)]
        body: Option<String>,
        #[arg(short = 'F', long)]
        body_file: Option<String>,
    },
    /// Closes one
    Close {
        item: String,
        #[arg(short, long)]
        comment: Option<String>,
        #[arg(short, long)]
        delete_branch: bool,
        #[arg(short, long)]
        reason: Option<String>,
    },
    /// Opens one again
    Reopen {
        item: String,
        #[arg(short, long)]
        comment: Option<String>,
    },
    /// Marks a pull request as ready for review
    Ready {
        item: Option<String>,
        #[arg(long)]
        undo: bool,
    },
    /// Merges a pull request
    Merge(MergeArguments),
    /// Shows the checks of a pull request
    Checks {
        item: Option<String>,
        #[arg(long)]
        watch: bool,
        #[arg(long)]
        required: bool,
    },
    /// Shows the pull request of the branch
    Status,
}

/// Format of the output.
#[derive(Debug, Args)]
pub struct Format {
    #[arg(long, value_delimiter = ',')]
    json: Vec<String>,
    #[arg(short = 'q', long, requires = "json")]
    jq: Option<String>,
}

#[derive(Debug, Args)]
struct CreateArguments {
    #[arg(short, long)]
    title: Option<String>,
    #[arg(short, long)]
    body: Option<String>,
    #[arg(short = 'F', long)]
    body_file: Option<String>,
    #[arg(short = 'B', long)]
    base: Option<String>,
    #[arg(short = 'H', long)]
    head: Option<String>,
    #[arg(short, long, visible_alias = "fill-first", alias = "fill-verbose")]
    fill: bool,
    #[arg(short, long)]
    draft: bool,
    #[arg(short, long)]
    label: Vec<String>,
    #[arg(short, long)]
    reviewer: Vec<String>,
    #[arg(short, long)]
    assignee: Vec<String>,
    #[arg(short, long)]
    milestone: Option<String>,
    #[arg(short, long)]
    project: Vec<String>,
    #[arg(long)]
    no_maintainer_edit: bool,
}

#[derive(Debug, Args)]
struct ListArguments {
    #[arg(short, long, default_value = "open")]
    state: String,
    #[arg(short = 'L', long, default_value_t = 30)]
    limit: usize,
    #[arg(short = 'H', long)]
    head: Option<String>,
    #[arg(short = 'B', long)]
    base: Option<String>,
    #[arg(short, long)]
    label: Vec<String>,
    #[arg(short = 'A', long)]
    author: Option<String>,
    #[arg(short = 'S', long)]
    search: Option<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
struct EditArguments {
    item: Option<String>,
    #[arg(short, long)]
    title: Option<String>,
    #[arg(short, long)]
    body: Option<String>,
    #[arg(short = 'F', long)]
    body_file: Option<String>,
    #[arg(short = 'B', long)]
    base: Option<String>,
    #[arg(long)]
    add_label: Vec<String>,
    #[arg(long)]
    remove_label: Vec<String>,
    #[arg(long)]
    add_reviewer: Vec<String>,
    #[arg(long)]
    remove_reviewer: Vec<String>,
    #[arg(long)]
    add_assignee: Vec<String>,
    #[arg(long)]
    remove_assignee: Vec<String>,
}

#[derive(Debug, Args)]
struct MergeArguments {
    item: Option<String>,
    #[arg(short, long)]
    merge: bool,
    #[arg(short, long)]
    squash: bool,
    #[arg(short, long)]
    rebase: bool,
    #[arg(short, long)]
    delete_branch: bool,
    #[arg(long)]
    auto: bool,
    #[arg(long)]
    admin: bool,
    #[arg(short = 't', long)]
    subject: Option<String>,
    #[arg(short, long)]
    body: Option<String>,
}

/// Runs a command and returns its output.
pub(super) fn run(session: &Session, arguments: Arguments) -> CommandResult {
    let repo = arguments.repo.as_deref();
    match arguments.group {
        Group::Version => Ok(format!("gh version {}\n", env!("CARGO_PKG_VERSION"))),
        Group::Api(arguments) => github_api::run(session, &session.project(repo)?, &arguments),
        Group::Auth(AuthCommand::SetupGit) => Ok(String::new()),
        Group::Auth(AuthCommand::Status { .. }) => {
            let host = session.project(None)?.host;
            Ok(format!(
                "{host}\n  ✓ Logged in to {host} account {AGENT} (GH_TOKEN)\n  - Active account: true\n  \
                 - Git operations protocol: https\n  - Token: ******\n"
            ))
        }
        Group::Repo(RepoCommand::View { repository, format }) => {
            let project = session.project(repository.as_deref().or(repo))?;
            match format.json.as_slice() {
                [] => Ok(format!("name:\t{}\ndescription:\t\n--\n", project.name)),
                fields => print(&select(&of_project(&project), fields)?, format.jq.as_deref()),
            }
        }
        Group::Pr(command) => {
            Items { session, project: session.project(repo)?, kind: ItemKind::ReviewRequest }.run(command)
        }
        Group::Issue(command) => Items { session, project: session.project(repo)?, kind: ItemKind::Issue }.run(command),
    }
}

/// The pull requests or the issues of a project.
struct Items<'a> {
    session: &'a Session,
    project: Project,
    kind: ItemKind,
}

impl Items<'_> {
    fn run(&self, command: Command) -> CommandResult {
        let is_review = self.kind == ItemKind::ReviewRequest;
        match command {
            Command::Create(arguments) => self.create(*arguments),
            Command::List(arguments) => self.list(&arguments),
            Command::View { item, comments, format } => self.view(item.as_deref(), comments, &format),
            Command::Edit(arguments) => self.edit(*arguments),
            Command::Comment { item, body, body_file } => {
                let item = self.find(item.as_deref())?;
                let comment = text_of(body, body_file.as_deref())?;
                let comment = comment.filter(|text| !text.trim().is_empty());
                let comment =
                    comment.ok_or_else(|| Failure::new("flags required when not running interactively: body"))?;
                let item = self.change(item, ItemChange { comment: Some(comment), ..ItemChange::default() })?;
                Ok(format!("{}#issuecomment-{}\n", item.url, item.comments.len()))
            }
            Command::Close { item, comment, delete_branch, reason: _ } => {
                let item = self.find(Some(&item))?;
                self.change(item, ItemChange { state: Some(ItemState::Closed), comment, ..ItemChange::default() })?;
                self.delete_branch(item, delete_branch);
                self.reported("Closed", item)
            }
            Command::Reopen { item, comment } => {
                let item = self.find(Some(&item))?;
                self.change(item, ItemChange { state: Some(ItemState::Open), comment, ..ItemChange::default() })?;
                self.reported("Reopened", item)
            }
            Command::Ready { item, undo } if is_review => {
                let item = self.find(item.as_deref())?;
                self.change(item, ItemChange { is_draft: Some(undo), ..ItemChange::default() })?;
                self.reported(if undo { "Converted to draft" } else { "Marked as ready for review" }, item)
            }
            Command::Merge(arguments) if is_review => self.merge(&arguments),
            Command::Checks { item, .. } if is_review => {
                let item = self.find(item.as_deref())?;
                let head = item.draft.head.as_deref().unwrap_or_default();
                Err(Failure::Refused(format!("no checks reported on the '{head}' branch")))
            }
            Command::Status if is_review => {
                let item = self.find(None)?;
                Ok(format!("Current branch\n  #{}  {} [{}]\n", item.number, item.draft.title, branch_of(item)))
            }
            Command::Ready { .. } | Command::Merge(_) | Command::Checks { .. } | Command::Status => {
                Err(Failure::Unsupported("this command of `gh issue`".to_owned()))
            }
        }
    }

    fn find(&self, wanted: Option<&str>) -> Result<&Item, Failure> {
        find(&self.project, self.kind, wanted, &self.session.checkout())
    }

    fn change(&self, item: &Item, change: ItemChange) -> Result<Item, Failure> {
        self.session.change(self.kind, item.number, change)
    }

    /// Reports a change on stderr, as `gh` does.
    fn reported(&self, done: &str, item: &Item) -> CommandResult {
        let what = if self.kind == ItemKind::Issue { "issue" } else { "pull request" };
        eprint(&format!("✓ {done} {what} {}#{} ({})", self.project.name, item.number, item.draft.title));
        Ok(String::new())
    }

    fn create(&self, arguments: CreateArguments) -> CommandResult {
        let owner = format!("{}:", self.project.name.split('/').next().unwrap_or_default());
        let mut item = NewItem {
            title: arguments.title,
            body: text_of(arguments.body, arguments.body_file.as_deref())?,
            head: arguments.head.map(|head| head.strip_prefix(&owner).map_or(head.clone(), str::to_owned)),
            base: arguments.base,
            fill: arguments.fill,
            is_draft: arguments.draft,
            labels: split(&arguments.label),
            reviewers: split(&arguments.reviewer),
            assignees: split(&arguments.assignee),
        };
        let mut incomplete = "must provide `--title` and `--body` when not running interactively";
        if self.kind == ItemKind::ReviewRequest {
            let checkout = self.session.checkout();
            let no_branch =
                "could not determine the current branch: could not determine current branch: not on any branch";
            let not_pushed = "aborted: you must first push the current branch to a remote, or use the --head flag";
            let (head, base) = item.complete(&self.project, &checkout, no_branch, |_| not_pushed.to_owned())?;
            if checkout.commits(&base, &head) == Some(0) {
                return Err(Failure::Refused(format!(
                    "pull request create failed: GraphQL: No commits between {base} and {head} (createPullRequest)"
                )));
            }
            incomplete = "must provide `--title` and `--body` (or `--fill` or `fill-first` or `--fillverbose`) when not running interactively";
        }
        let item = self.session.create(item.into_draft(self.kind, incomplete)?)?;
        Ok(format!("{}\n", item.url))
    }

    fn list(&self, arguments: &ListArguments) -> CommandResult {
        let wanted = arguments.state.to_lowercase();
        let labels = split(&arguments.label);
        let is_wanted = |item: &&Item| {
            let draft = &item.draft;
            let is_closed = wanted == "closed" && item.state != ItemState::Open;
            draft.kind == self.kind
                && (wanted == "all" || is_closed || wanted == state(item.state).to_lowercase())
                && arguments.head.as_ref().is_none_or(|head| draft.head.as_ref() == Some(head))
                && arguments.base.as_ref().is_none_or(|base| draft.base.as_ref() == Some(base))
                && labels.iter().all(|label| draft.labels.contains(label))
                && arguments.author.as_deref().is_none_or(|author| ["@me", AGENT].contains(&author))
        };
        if let Some(search) = &arguments.search {
            return Err(Failure::Unsupported(format!("`--search {search}`")));
        }
        let items: Vec<&Item> = self.project.items.iter().rev().filter(is_wanted).take(arguments.limit).collect();
        if !arguments.format.json.is_empty() {
            let checkout = self.session.checkout();
            let fields = &arguments.format.json;
            let list = items.iter().map(|item| select(&of_item(item, &checkout), fields));
            let list = list.collect::<Result<Vec<_>, Failure>>()?;
            return print(&list.into(), arguments.format.jq.as_deref());
        }
        let line = |item: &&Item| {
            let middle = match self.kind {
                ItemKind::ReviewRequest => format!("{}\t{}\t{}", item.draft.title, branch_of(item), label_of(item)),
                ItemKind::Issue => {
                    format!("{}\t{}\t{}", state(item.state), item.draft.title, item.draft.labels.join(", "))
                }
            };
            format!("{}\t{middle}\t{}\n", item.number, time(item.created))
        };
        Ok(items.iter().map(line).collect())
    }

    fn view(&self, wanted: Option<&str>, comments: bool, format: &Format) -> CommandResult {
        let item = self.find(wanted)?;
        if !format.json.is_empty() {
            let all = of_item(item, &self.session.checkout());
            return print(&select(&all, &format.json)?, format.jq.as_deref());
        }
        if comments {
            let comment =
                |body: &String| format!("author:\t{AGENT}\nassociation:\tmember\nedited:\tfalse\n--\n{body}\n--\n");
            return Ok(item.comments.iter().map(comment).collect());
        }
        let draft = &item.draft;
        let mut text = format!(
            "title:\t{}\nstate:\t{}\nauthor:\t{AGENT}\nlabels:\t{}\nassignees:\t{}\n",
            draft.title,
            label_of(item),
            draft.labels.join(", "),
            draft.assignees.join(", ")
        );
        if self.kind == ItemKind::ReviewRequest {
            text.push_str(&format!("reviewers:\t{}\n", draft.reviewers.join(", ")));
        }
        text.push_str(&format!("number:\t{}\nurl:\t{}\n--\n{}\n", item.number, item.url, draft.body));
        Ok(text)
    }

    fn edit(&self, arguments: EditArguments) -> CommandResult {
        let item = self.find(arguments.item.as_deref())?;
        let members = |add: &[String], remove: &[String]| Members { add: split(add), remove: split(remove) };
        let change = ItemChange {
            title: arguments.title,
            body: text_of(arguments.body, arguments.body_file.as_deref())?,
            base: arguments.base,
            labels: members(&arguments.add_label, &arguments.remove_label),
            reviewers: members(&arguments.add_reviewer, &arguments.remove_reviewer),
            assignees: members(&arguments.add_assignee, &arguments.remove_assignee),
            ..ItemChange::default()
        };
        Ok(format!("{}\n", self.change(item, change)?.url))
    }

    fn merge(&self, arguments: &MergeArguments) -> CommandResult {
        let item = self.find(arguments.item.as_deref())?;
        let method = match (arguments.merge, arguments.squash, arguments.rebase) {
            (true, false, false) => MergeMethod::Merge,
            (false, true, false) => MergeMethod::Squash,
            (false, false, true) => MergeMethod::Rebase,
            _ => return Err(Failure::new("--merge, --rebase, or --squash required when not running interactively")),
        };
        if item.state != ItemState::Open {
            return Err(Failure::Refused(format!("Pull request {}#{} is not open", self.project.name, item.number)));
        }
        let usual = match method {
            MergeMethod::Merge => format!("Merge pull request #{} from {}", item.number, branch_of(item)),
            _ => format!("{} (#{})", item.draft.title, item.number),
        };
        let body = arguments.body.clone().unwrap_or_else(|| item.draft.title.clone());
        let subject = format!("{}\n\n{body}", arguments.subject.clone().unwrap_or(usual));
        self.session.checkout().merge(item, method, &subject)?;
        self.change(item, ItemChange { state: Some(ItemState::Merged), ..ItemChange::default() })?;
        self.delete_branch(item, arguments.delete_branch);
        self.reported("Merged", item)
    }

    fn delete_branch(&self, item: &Item, is_wanted: bool) {
        if let Some(head) = item.draft.head.as_ref().filter(|_| is_wanted) {
            self.session.checkout().delete(head);
        }
    }
}

fn branch_of(item: &Item) -> &str {
    item.draft.head.as_deref().unwrap_or_default()
}

/// Returns the state; drafts have a separate one.
fn label_of(item: &Item) -> &'static str {
    match item.draft.is_draft && item.state == ItemState::Open {
        true => "DRAFT",
        false => state(item.state),
    }
}

/// Writes a line to stderr.
fn eprint(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
        crate::stand_in::gitlab::Arguments::command().debug_assert();
    }
}
