//! Asks a remote's hosting service for its review requests, with the service's own program: `gh` or `glab`.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Forge, ForgeKind, ReviewRequest};
use serde_json::Value;

use crate::supervise::{Supervisor, run};

/// Maximum size of an answer that is read, in bytes.
const MAX_OUTPUT: usize = 8 << 20;
/// Maximum number of review requests to fetch, open or closed; the newest first.
const MOST: &str = "500";

/// Asks services for review requests.
pub(super) struct Reviews<'a> {
    pub(super) supervisor: &'a Supervisor,
    /// The user's environment, because the user's account is used.
    pub(super) env: &'a BTreeMap<String, String>,
    /// Repository from which the sandboxes are cloned.
    pub(super) source_repo: Option<&'a str>,
}

impl Reviews<'_> {
    /// Returns the review requests for the project at `url`, with the timeout `deadline`; `None` if it is not on a
    /// known service.
    pub(super) async fn of(&self, url: &str, deadline: Duration) -> Option<Result<Vec<ReviewRequest>, String>> {
        let forge = Forge::of(url)?;
        if self.may_ask(&forge) {
            return Some(self.ask(&forge, deadline).await);
        }
        let (service, host) = (forge.kind.name(), &forge.host);
        Some(Err(format!("`{host}` is not queried: set `GITLAB_HOST={host}` if it is your {service}")))
    }

    /// Returns `true` if the user's account may be used at a host: the service's own host, the one in the user's
    /// variables, or the host in `--source-repo`.
    fn may_ask(&self, forge: &Forge) -> bool {
        let named =
            ["GITLAB_HOST", "GL_HOST"].iter().find_map(|name| self.env.get(*name).filter(|host| !host.is_empty()));
        let own = match forge.kind {
            ForgeKind::GitHub => return true,
            ForgeKind::GitLab => named.map_or("gitlab.com", |host| host_of(host)),
        };
        let source = self.source_repo.and_then(Forge::of);
        own.eq_ignore_ascii_case(&forge.host) || source.is_some_and(|source| source.host == forge.host)
    }

    async fn ask(&self, forge: &Forge, deadline: Duration) -> Result<Vec<ReviewRequest>, String> {
        let program = forge.kind.program();
        let fields = "number,headRefName,baseRefName,url,state,title,body,isDraft";
        let args: Vec<&str> = match forge.kind {
            ForgeKind::GitHub => {
                vec!["pr", "list", "--repo", &forge.project, "--state", "all", "--limit", MOST, "--json", fields]
            }
            ForgeKind::GitLab => {
                vec!["mr", "list", "--repo", &forge.project, "--all", "--per-page", "100", "--output", "json"]
            }
        };
        let mut command = self.supervisor.command(program, args);
        command.env_clear().envs(self.env).current_dir("/");
        command.env("GH_PROMPT_DISABLED", "1").env("NO_PROMPT", "1").env("GITLAB_HOST", &forge.host);
        command.env("GH_HOST", "github.com");
        let output = run(command, deadline, MAX_OUTPUT).await.map_err(|error| format!("`{program}`: {error}"))?;
        if output.timed_out {
            return Err(format!("`{program}` had not answered after {} s", deadline.as_secs_f64()));
        }
        if !output.status.success() {
            let message = output.stderr.text();
            let message = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
            return Err(match output.status.code() {
                Some(127) => format!("`{program}` is not installed"),
                _ => format!("`{program}` failed: {message}"),
            });
        }
        read(forge.kind, &output.stdout.text()).ok_or_else(|| format!("`{program}` did not return a list"))
    }
}

/// Returns the host in a variable's value, which is a host or a URL.
fn host_of(named: &str) -> &str {
    let rest = named.split_once("://").map_or(named, |(_, rest)| rest);
    rest.split(['/', ':']).next().unwrap_or(rest)
}

/// Parses the list that a service's program printed.
fn read(kind: ForgeKind, answer: &str) -> Option<Vec<ReviewRequest>> {
    let Value::Array(list) = serde_json::from_str(answer.trim()).ok()? else { return None };
    list.iter().map(|request| review_request(kind, request)).collect()
}

fn review_request(kind: ForgeKind, request: &Value) -> Option<ReviewRequest> {
    let text = |key: &str| request.get(key).and_then(Value::as_str).map(str::to_owned);
    let (number, head, base, url, body, draft) = match kind {
        ForgeKind::GitHub => ("number", "headRefName", "baseRefName", "url", "body", "isDraft"),
        ForgeKind::GitLab => ("iid", "source_branch", "target_branch", "web_url", "description", "draft"),
    };
    let state = text("state");
    Some(ReviewRequest {
        number: request.get(number)?.as_u64()?,
        head: text(head),
        base: text(base),
        url: text(url),
        draft: request.get(draft).and_then(Value::as_bool),
        title: text("title"),
        body: text(body),
        // A request without a state was listed, so it exists and counts as open.
        open: state.is_none_or(|state| ["open", "opened"].contains(&state.to_ascii_lowercase().as_str())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_named_by_the_user_are_queried() {
        let may = |env: &[(&str, &str)], source_repo: Option<&str>, url: &str| {
            let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let supervisor = Supervisor::unchecked("trialrun").unwrap();
            Reviews { supervisor: &supervisor, env: &env, source_repo }.may_ask(&Forge::of(url).unwrap())
        };
        let evil = "http://gitlab.evil.example/x/y.git";
        assert!(may(&[], None, "git@github.com:a/b.git") && may(&[], None, "https://gitlab.com/a/b"));
        assert!(!may(&[], None, evil));
        assert!(may(&[("GITLAB_HOST", "https://gitlab.evil.example/")], None, evil));
        assert!(may(&[], Some("git@gitlab.evil.example:x/z.git"), evil));
        let own = [("GITLAB_HOST", "gitlab.own.example")];
        assert!(!may(&own, None, evil));
        assert!(!may(&own, None, "https://gitlab.com/a/b"), "the token belongs to the user's own host");
    }

    #[test]
    fn responses_of_both_services_are_parsed_into_the_same_structure() {
        let github = r#"[{"number":7,"headRefName":"a","baseRefName":"main","url":"u","state":"OPEN"},
            {"number":6,"headRefName":null,"state":"MERGED"}]"#;
        let gitlab = r#"[{"iid":7,"source_branch":"a","target_branch":"main","web_url":"u","state":"opened"}]"#;
        let (github, gitlab) = (read(ForgeKind::GitHub, github).unwrap(), read(ForgeKind::GitLab, gitlab).unwrap());
        assert_eq!(github[0], gitlab[0]);
        assert_eq!((github[1].head.as_deref(), github[1].open), (None, false));
        assert_eq!(read(ForgeKind::GitHub, "{}"), None);
        assert_eq!(read(ForgeKind::GitHub, r#"[{"state":"OPEN"}]"#), None);
    }
}
