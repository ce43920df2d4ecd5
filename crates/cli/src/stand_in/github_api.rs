//! The `gh api` requests that agents use for pull requests and issues.

use clap::Args;
use sandbox::remote::{Draft, Item, ItemChange, ItemKind, ItemState, Project};
use serde_json::{Value, json};

use super::json::{AGENT, print};
use super::{CommandResult, Failure, Session, time};

/// Arguments of `gh api`.
#[derive(Debug, Args)]
pub struct ApiArguments {
    /// Path, such as `repos/{owner}/{repo}/pulls`
    endpoint: String,
    #[arg(short = 'X', long)]
    method: Option<String>,
    #[arg(short = 'f', long)]
    raw_field: Vec<String>,
    #[arg(short = 'F', long)]
    field: Vec<String>,
    #[arg(short = 'H', long)]
    header: Vec<String>,
    #[arg(short = 'q', long)]
    jq: Option<String>,
    #[arg(long)]
    paginate: bool,
    #[arg(long)]
    silent: bool,
}

/// Answers a request.
pub(super) fn run(session: &Session, project: &Project, arguments: &ApiArguments) -> CommandResult {
    let (owner, name) = project.name.rsplit_once('/').unwrap_or(("", &project.name));
    let path = arguments.endpoint.replace("{owner}", owner).replace("{repo}", name);
    let (path, query) = path.split_once('?').unwrap_or((&path, ""));
    let path = path.trim_matches('/');
    let fields: Vec<(&str, &str)> =
        arguments.raw_field.iter().chain(&arguments.field).filter_map(|field| field.split_once('=')).collect();
    let field = |key: &str| fields.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned());
    let usual = if fields.is_empty() { "GET" } else { "POST" };
    let method = arguments.method.as_deref().unwrap_or(usual).to_uppercase();
    let unsupported = || Failure::Unsupported(format!("`{method} {path}`"));
    let below = path.strip_prefix("repos/").and_then(|path| path.strip_prefix(&project.name));
    let parts: Vec<&str> = below.unwrap_or(path).split('/').filter(|part| !part.is_empty()).collect();
    let kind = match parts.first() {
        Some(&"pulls") => ItemKind::ReviewRequest,
        _ => ItemKind::Issue,
    };
    let find = |number: &str| {
        let number = number.parse().ok();
        let found = project
            .items
            .iter()
            .find(|item| Some(item.number) == number && (item.draft.kind == kind || kind == ItemKind::Issue));
        found.ok_or_else(|| Failure::new("gh: Not Found (HTTP 404)"))
    };
    let value = match (method.as_str(), below.is_some(), parts.as_slice()) {
        ("GET", false, ["user"]) => json!({ "login": AGENT }),
        ("GET", true, []) => json!({
            "default_branch": project.default_branch, "full_name": project.name, "html_url": project.url(),
            "name": name, "owner": { "login": owner }, "private": true,
        }),
        ("GET", true, ["pulls" | "issues"]) => list(project, kind, query),
        ("GET", true, ["pulls" | "issues", number]) => of_item(find(number)?),
        ("GET", true, ["pulls" | "issues", number, "comments"]) => {
            let comments = &find(number)?.comments;
            comments.iter().map(|body| json!({ "body": body, "user": { "login": AGENT } })).collect()
        }
        ("POST", true, ["pulls" | "issues"]) => {
            let title = field("title").unwrap_or_default();
            let is_draft = field("draft").is_some_and(|draft| draft == "true");
            let (labels, reviewers, assignees) = (Vec::new(), Vec::new(), Vec::new());
            let (body, head, base) = (field("body").unwrap_or_default(), field("head"), field("base"));
            let head = head.map(|head| head.strip_prefix(&format!("{owner}:")).map_or(head.clone(), str::to_owned));
            of_item(&session.create(Draft { kind, title, body, head, base, is_draft, labels, reviewers, assignees })?)
        }
        ("POST", true, ["issues" | "pulls", number, "comments"]) => {
            let item = find(number)?;
            let change = ItemChange { comment: field("body"), ..ItemChange::default() };
            session.change(item.draft.kind, item.number, change)?;
            json!({ "body": field("body"), "user": { "login": AGENT } })
        }
        ("PATCH", true, ["pulls" | "issues", number]) => {
            let item = find(number)?;
            let state = match field("state").as_deref() {
                Some("closed") => Some(ItemState::Closed),
                Some("open") => Some(ItemState::Open),
                _ => None,
            };
            let (title, body, base) = (field("title"), field("body"), field("base"));
            let change = ItemChange { title, body, base, state, ..ItemChange::default() };
            of_item(&session.change(item.draft.kind, item.number, change)?)
        }
        _ => return Err(unsupported()),
    };
    if arguments.silent { Ok(String::new()) } else { print(&value, arguments.jq.as_deref()) }
}

fn list(project: &Project, kind: ItemKind, query: &str) -> Value {
    let parameter = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    let state = parameter("state").unwrap_or("open");
    let head = parameter("head").map(|head| head.split_once(':').map_or(head, |(_, branch)| branch));
    let is_wanted = |item: &&Item| {
        item.draft.kind == kind
            && (state == "all" || (state == "open") == (item.state == ItemState::Open))
            && head.is_none_or(|head| item.draft.head.as_deref() == Some(head))
    };
    project.items.iter().rev().filter(is_wanted).map(of_item).collect()
}

fn of_item(item: &Item) -> Value {
    let draft = &item.draft;
    let people = |names: &[String]| names.iter().map(|name| json!({ "login": name })).collect::<Vec<_>>();
    let mut value = json!({
        "assignees": people(&draft.assignees),
        "body": draft.body,
        "created_at": time(item.created),
        "html_url": item.url,
        "labels": draft.labels.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        "number": item.number,
        "state": if item.state == ItemState::Open { "open" } else { "closed" },
        "title": draft.title,
        "updated_at": time(item.updated),
        "user": { "login": AGENT },
    });
    if draft.kind == ItemKind::ReviewRequest {
        value["base"] = json!({ "ref": draft.base });
        value["draft"] = json!(draft.is_draft);
        value["head"] = json!({ "ref": draft.head });
        value["merged"] = json!(item.state == ItemState::Merged);
        value["requested_reviewers"] = json!(people(&draft.reviewers));
    }
    value
}
