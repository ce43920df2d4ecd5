//! The machine and the source from which a run is started.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use model::Origin;

/// Variables with the branch and the commit in a CI service. The branch of a merge request comes before the reference that
/// the service made for it.
const SERVICES: [(&str, &[&str], &str); 8] = [
    ("GITHUB_ACTIONS", &["GITHUB_HEAD_REF", "GITHUB_REF_NAME"], "GITHUB_SHA"),
    ("GITLAB_CI", &["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_BRANCH", "CI_COMMIT_REF_NAME"], "CI_COMMIT_SHA"),
    ("BUILDKITE", &["BUILDKITE_BRANCH"], "BUILDKITE_COMMIT"),
    ("CIRCLECI", &["CIRCLE_BRANCH"], "CIRCLE_SHA1"),
    ("TF_BUILD", &["SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCHNAME"], "BUILD_SOURCEVERSION"),
    ("JENKINS_URL", &["CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"], "GIT_COMMIT"),
    ("BITBUCKET_BUILD_NUMBER", &["BITBUCKET_BRANCH"], "BITBUCKET_COMMIT"),
    ("DRONE", &["DRONE_SOURCE_BRANCH", "DRONE_BRANCH"], "DRONE_COMMIT_SHA"),
];

/// Returns the origin of a run that is started in `directory`. What is checked out takes precedence over what a CI service
/// says; CI services check out commits without a branch.
pub fn origin(directory: &Path, environment: &BTreeMap<String, String>) -> Origin {
    let variable = |name: &&str| environment.get(*name).filter(|value| !value.is_empty()).cloned();
    let service = SERVICES.iter().find(|(sign, ..)| variable(sign).is_some());
    let (commit, branch) = checked_out(directory, environment).unwrap_or_default();
    Origin {
        host: sandbox::host_name(),
        branch: branch.or_else(|| service?.1.iter().find_map(variable)),
        commit: commit.or_else(|| variable(&service?.2)),
    }
}

/// Returns the commit and the branch that are checked out.
fn checked_out(directory: &Path, environment: &BTreeMap<String, String>) -> Option<(Option<String>, Option<String>)> {
    let output = Command::new("git")
        .args(["rev-parse", "HEAD", "--abbrev-ref", "HEAD"])
        .current_dir(directory)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut lines = text.lines().map(str::to_owned);
    // Without a branch, its name is that of the reference.
    Some((lines.next(), lines.next().filter(|branch| branch != "HEAD")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        pairs.chain([("PATH".to_owned(), path)]).collect()
    }

    #[test]
    fn a_ci_service_says_the_branch_of_what_is_checked_out() {
        let folder = tempfile::tempdir().unwrap();
        let none = variables(&[("GIT_CEILING_DIRECTORIES", "/")]);
        let found = origin(folder.path(), &none);
        assert_eq!((found.branch, found.commit), (None, None));
        assert_eq!(found.host, sandbox::host_name());
        let of = |pairs: &[(&str, &str)]| {
            let origin = origin(folder.path(), &variables(pairs));
            (origin.branch.unwrap_or_default(), origin.commit.unwrap_or_default())
        };
        let github = [("GITHUB_ACTIONS", "true"), ("GITHUB_REF_NAME", "7/merge"), ("GITHUB_SHA", "abc")];
        assert_eq!(of(&github), ("7/merge".into(), "abc".into()));
        let pull_request = [&github[..], &[("GITHUB_HEAD_REF", "fix")]].concat();
        assert_eq!(of(&pull_request), ("fix".into(), "abc".into()));
        assert_eq!(of(&[("CI_COMMIT_SHA", "abc")]), (String::new(), String::new()), "no service");

        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=trunk"];
            let output =
                Command::new("git").args(identity).args(arguments).current_dir(folder.path()).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        let commit = git(&["rev-parse", "HEAD"]);
        assert_eq!(of(&pull_request), ("trunk".into(), commit.clone()));
        git(&["checkout", "-q", "--detach"]);
        assert_eq!(of(&pull_request), ("fix".into(), commit.clone()));
        assert_eq!(of(&[]), (String::new(), commit));
    }
}
