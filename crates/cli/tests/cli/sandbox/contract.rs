//! The contract of sandboxes that are directories on this machine.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use model::{Change, Collected, CopyTree, Excerpt, FixtureFile, Fixtures, RepositoryChange, Skill, Span, Spanned};
use sandbox::supervise::{Network, Output, Supervisor, run};
use sandbox::{Host, Registry, RepositoryDetail, Request, SANDBOXES, Sandbox, SandboxError, SandboxFactory, prune};

use super::kind::Kind;

/// Defines a test for each rule of the contract that also depends on where processes run.
macro_rules! directory_tests {
    ($kind:path) => {
        $crate::sandbox::contract::directory_tests! { $kind, [] }
    };
    ($kind:path, $attributes:tt) => {
        $crate::sandbox::kind::tests_of! { async contract, $kind, $attributes:
            a_copy_has_a_clean_status_and_allows_commits
            removing_or_closing_the_sandbox_counts_against_the_agent
            files_next_to_the_working_directory_are_reported
            processes_see_only_sandbox_directories_and_fixture_variables
            concurrent_sandboxes_share_a_template_and_are_all_removed
            the_end_of_a_run_removes_everything_and_rejects_new_sandboxes
        }
    };
}
pub(super) use directory_tests;

/// Defines a test for each rule about laying out and inspecting a directory. The same code does this for all these
/// kinds, outside the enclosure of processes, so one kind is tested.
macro_rules! layout_tests {
    ($kind:path) => {
        $crate::sandbox::kind::tests_of! { async contract, $kind, []:
            the_same_fixture_yields_the_same_commit_everywhere
            a_change_only_to_the_repository_is_detected
            git_hooks_and_monitors_set_by_the_agent_do_not_run_during_inspection
            git_settings_of_the_agent_do_not_affect_inspection
            git_settings_from_setup_still_apply_after_the_agent
            remotes_are_those_configured_before_the_agent_acted
            no_agent_code_runs_when_git_inspects_the_repository
            a_repository_broken_by_the_agent_is_reported_and_does_not_block
            a_repository_created_by_the_agent_in_another_format_is_read
            remotes_are_queried_concurrently
            a_change_with_restored_size_and_time_is_detected
            commands_see_the_repository_that_inspection_sees
            what_the_agent_did_in_git_is_in_the_grading_tree
            an_object_with_a_forged_name_is_not_taken
            the_home_of_commands_is_as_it_was_given
            changes_by_setup_commands_are_part_of_the_baseline
            a_setup_command_that_fails_is_quoted_and_leaves_nothing_behind
            a_skill_is_installed_without_its_answers_and_git_does_not_see_it
            bytes_modes_and_links_are_preserved
            a_fixture_cannot_write_outside_even_through_its_own_links
            a_tree_that_is_a_repository_keeps_its_history_and_runs_no_hook
            staged_paths_are_literal_and_not_patterns
            a_kept_sandbox_remains_but_is_not_in_use_after_its_owner_ended
            abandoned_creation_leaves_nothing_behind
            every_vector_agrees_or_differs_as_intended
        }
    };
}
pub(super) use layout_tests;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A temporary directory for sandboxes, with the factory that creates them there.
struct Bench {
    temp: tempfile::TempDir,
    registry: Arc<Registry>,
    factory: Option<SandboxFactory>,
}

impl Bench {
    fn new(kind: &Kind) -> Self {
        Self::with_env(kind, &[])
    }

    fn with_env(kind: &Kind, env: &[(&str, &str)]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let mut extra_env = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
        extra_env.extend(kind.env.iter().cloned());
        extra_env.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let host = Host {
            env: extra_env,
            home: None,
            temp: temp.path().to_owned(),
            supervisor: Supervisor::new(env!("CARGO_BIN_EXE_trialrun")).unwrap(),
        };
        let registry = Registry::new();
        let factory = SandboxFactory::open_isolated(kind.name, &host, &registry, &kind.options).unwrap();
        Self { temp, registry, factory: Some(factory) }
    }

    async fn try_make(&self, request: Request) -> Result<Arc<dyn Sandbox>, SandboxError> {
        self.factory.as_ref().unwrap().make(request).await
    }

    async fn make(&self, fixtures: Fixtures) -> Arc<dyn Sandbox> {
        self.try_make(request(fixtures)).await.unwrap()
    }

    /// Returns everything in the directory for sandboxes.
    fn left(&self) -> Vec<PathBuf> {
        fs::read_dir(self.temp.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

fn request(fixtures: Fixtures) -> Request {
    Request {
        name: "suite::case#1".to_owned(),
        fixtures: Arc::new(fixtures),
        skill: None,
        graded: model::Graded::default(),
        repository: RepositoryDetail::After,
        source_repo: None,
        remote: model::RemoteMode::Isolated,
        extra_env: Vec::new(),
        setup_timeout: TIMEOUT,
        network: Network::Open,
        faults: Vec::new(),
        canaries: Vec::new(),
        keep: false,
        only_graded: false,
    }
}

fn place() -> Excerpt {
    Excerpt { file: "a.yaml".into(), line: 3, column: 5, length: 1, text: "  here".into(), skipped: 0 }
}

fn file(path: &str, content: &str) -> FixtureFile {
    FixtureFile { path: path.into(), content: content.as_bytes().into(), executable: false, source: place() }
}

fn git(files_committed: &[(&str, &str)]) -> Fixtures {
    let files_committed = files_committed.iter().map(|(path, content)| file(path, content)).collect();
    Fixtures { git_init: true, files_committed, ..Fixtures::default() }
}

fn commands(commands: &[&str]) -> Vec<Spanned<String>> {
    commands.iter().map(|command| Spanned::new((*command).to_owned(), Span::default())).collect()
}

fn skill(directory: &Path) -> Arc<Skill> {
    Arc::new(Skill {
        name: directory.file_name().unwrap().to_str().unwrap().into(),
        description: String::new(),
        directory: Some(directory.to_owned()),
        version: None,
        body: String::new(),
        content_hash: String::new(),
        allowed_tools_raw: Vec::new(),
        allowed_tools: Vec::new(),
        scripts: Vec::new(),
        token_budget: None,
        frontmatter: serde_json::Map::new(),
        plugin: None,
    })
}

/// Creates a skill `sk` with a test that contains the answers.
fn small_skill(parent: &Path) -> Arc<Skill> {
    let directory = parent.join("sk");
    fs::create_dir_all(directory.join("tests")).unwrap();
    fs::write(directory.join("SKILL.md"), "---\nname: sk\n---\nBody\n").unwrap();
    fs::write(directory.join("tests/t.yaml"), "scenario: x\n").unwrap();
    skill(&directory)
}

async fn shell(sandbox: &dyn Sandbox, script: &str) -> Output {
    let args = [OsStr::new("-c"), OsStr::new(script)];
    run(sandbox.command(OsStr::new("sh"), &args, &[]), TIMEOUT, 1 << 20).await.unwrap()
}

/// Returns the output of a script, or its error.
async fn run_script(sandbox: &dyn Sandbox, script: &str) -> String {
    let output = shell(sandbox, script).await;
    if output.status.success() {
        output.stdout.text().trim_end().to_owned()
    } else {
        format!("ERR {}", output.stderr.text())
    }
}

fn changed(collected: &Collected) -> Vec<(&str, Change)> {
    collected.files_changed.iter().map(|change| (change.path.as_str(), change.change)).collect()
}

pub(super) async fn the_same_fixture_yields_the_same_commit_everywhere(kind: &Kind) {
    let fixtures = git(&[("a", "hello\n"), ("dir/b", "world\n")]);
    // A machine with a configuration that would change the repository.
    let elsewhere = tempfile::tempdir().unwrap();
    let config = "[init]\n defaultBranch = other\n[user]\n name = Somebody\n email = s@example.com\n[core]\n hooksPath = /nowhere\n[commit]\n gpgsign = true\n";
    fs::write(elsewhere.path().join(".gitconfig"), config).unwrap();
    let home = elsewhere.path().to_str().unwrap();
    let hostile = [
        ("HOME", home),
        ("XDG_CONFIG_HOME", home),
        ("GIT_CONFIG_GLOBAL", home),
        ("GIT_AUTHOR_NAME", "Somebody"),
        ("GIT_DIR", "/nowhere"),
        ("TZ", "Asia/Tokyo"),
    ];
    for bench in [Bench::new(kind), Bench::new(kind), Bench::with_env(kind, &hostile)] {
        let sandbox = bench.make(fixtures.clone()).await;
        assert_eq!(
            run_script(&*sandbox, "git rev-parse HEAD; git log --format='%an <%ae> %at %ct %s %D'").await,
            "80e3919de3993107b3a72e76525968befaed6d27\n\
             trialrun <trialrun@example.com> 946684800 946684800 trialrun: fixture baseline HEAD -> main"
        );
    }
}

pub(super) async fn a_copy_has_a_clean_status_and_allows_commits(kind: &Kind) {
    let bench = Bench::new(kind);
    let first = bench.make(git(&[("a", "1\n"), ("b", "2\n")])).await;
    // `diff-files` trusts the index and refreshes nothing.
    assert_eq!(
        run_script(&*first, "git diff-files; git fsck --strict; git count-objects").await,
        "0 objects, 0 kilobytes"
    );
    let before = first.collect().await.unwrap();
    let repository = before.repository.clone().unwrap();
    assert_eq!(changed(&before), []);
    assert_eq!((repository.branch.as_deref(), repository.status.len()), (Some("main"), 0));
    assert_eq!(repository.new_commits, [] as [&str; 0]);

    run_script(&*first, "echo 3 > a; git add a; git commit -qm 'Change a'; git checkout -qb topic; echo 4 > c; rm b")
        .await;
    let after = first.collect().await.unwrap();
    assert_eq!(changed(&after), [("a", Change::Modified), ("b", Change::Deleted), ("c", Change::Added)]);
    let now = after.repository.unwrap();
    assert_eq!(now.branch.as_deref(), Some("topic"));
    assert_eq!(now.status, [" D b", "?? c"]);
    assert_eq!(now.new_commits, [format!("{} Change a", now.head.as_deref().unwrap())]);
    assert_ne!(now.head, repository.head);
    assert_eq!(run_script(&*first, "git log -1 --format='%an %ae'").await, "trialrun trialrun@example.com");

    let second = bench.make(git(&[("a", "1\n"), ("b", "2\n")])).await;
    assert_eq!(run_script(&*second, "git status --porcelain --branch; cat a").await, "## main\n1");
}

pub(super) async fn a_change_only_to_the_repository_is_detected(kind: &Kind) {
    let bench = Bench::new(kind);
    let sandbox = bench.make(git(&[("a", "1\n")])).await;
    run_script(&*sandbox, "git commit -q --allow-empty -m one; git commit -q --allow-empty -m two").await;
    let collected = sandbox.collect().await.unwrap();
    assert_eq!(changed(&collected), []);
    let subjects = collected.repository.unwrap().new_commits;
    assert_eq!(subjects.iter().map(|commit| &commit[41..]).collect::<Vec<_>>(), ["two", "one"]);

    let bare = bench.make(Fixtures::default()).await;
    assert_eq!(bare.collect().await.unwrap().repository, None);
    run_script(&*bare, "git init -qb new .; git -c user.name=a -c user.email=b commit -q --allow-empty -m first").await;
    let made = bare.collect().await.unwrap().repository.unwrap();
    assert_eq!((made.branch.as_deref(), made.new_commits.len()), (Some("new"), 1));
    run_script(&*bare, "rm -r .git/refs .git/objects").await;
    assert_eq!(bare.collect().await.unwrap().repository, None, "a broken repository does not count");
}

pub(super) async fn git_hooks_and_monitors_set_by_the_agent_do_not_run_during_inspection(kind: &Kind) {
    let bench = Bench::new(kind);
    let sandbox = bench.make(git(&[("a", "1\n")])).await;
    run_script(
        &*sandbox,
        "printf '#!/bin/sh\\ntouch ../ran\\n' > hook; chmod +x hook; git config core.fsmonitor ./hook",
    )
    .await;
    let collected = sandbox.collect().await.unwrap();
    assert_eq!(collected.repository.unwrap().status, ["?? hook"]);
    assert_eq!(collected.outside_changes, [] as [&str; 0]);
}

/// Creates a sandbox with these setup commands, whose repository is monitored.
async fn watched(bench: &Bench, setup: &[&str]) -> Arc<dyn Sandbox> {
    let fixtures = Fixtures { setup_commands: commands(setup), ..git(&[("a", "1\n"), ("b", "2\n")]) };
    bench.try_make(Request { repository: RepositoryDetail::Changes, ..request(fixtures) }).await.unwrap()
}

async fn change(sandbox: &dyn Sandbox) -> RepositoryChange {
    *sandbox.collect().await.unwrap().repository_change.unwrap()
}

pub(super) async fn git_settings_of_the_agent_do_not_affect_inspection(kind: &Kind) {
    let bench = Bench::new(kind);
    for (hide, expected) in [
        ("git update-index --assume-unchanged a; echo 2 > a", " M a"),
        ("git update-index --skip-worktree a; echo 2 > a", " M a"),
        ("git config core.excludesFile ~/x; echo '*' > ~/x; touch new", "?? new"),
        ("mkdir -p ~/.config/git; echo '*' > ~/.config/git/ignore; touch new", "?? new"),
        ("mkdir -p .git/info; echo '*' >> .git/info/exclude; touch new", "?? new"),
        ("touch new; git config core.worktree $HOME", "?? new"),
        ("touch new; git config core.bare true", "?? new"),
        ("touch new; git config status.showUntrackedFiles no", "?? new"),
        ("git config filter.x.clean 'echo 1'; echo 'a filter=x' > .git/info/attributes; echo 2 > a", " M a"),
        ("git config core.autocrlf true; printf '1\\r\\n' > a", " M a"),
    ] {
        let sandbox = watched(&bench, &[]).await;
        run_script(&*sandbox, hide).await;
        assert_eq!(change(&*sandbox).await.after.status, [expected], "{hide}");
        assert_eq!(sandbox.collect().await.unwrap().repository.unwrap().status, [expected], "{hide}");
    }
    let plain = bench.make(git(&[("a", "1\n")])).await;
    run_script(&*plain, "git update-index --assume-unchanged a; echo 2 > a").await;
    assert_eq!(plain.collect().await.unwrap().repository.unwrap().status, [" M a"]);
}

pub(super) async fn git_settings_from_setup_still_apply_after_the_agent(kind: &Kind) {
    let bench = Bench::new(kind);
    let sandbox =
        watched(&bench, &["git config core.fileMode false", "mkdir -p .git/info; echo '*.log' >> .git/info/exclude"])
            .await;
    run_script(&*sandbox, "chmod +x a; touch x.log; git config core.fileMode true; rm .git/info/exclude").await;
    assert_eq!(change(&*sandbox).await.after.status, [] as [&str; 0]);
}

const ORIGIN: [&str; 3] =
    ["git init -q --bare $TMPDIR/r.git", "git remote add origin $TMPDIR/r.git", "git push -q origin main"];

pub(super) async fn remotes_are_those_configured_before_the_agent_acted(kind: &Kind) {
    let bench = Bench::new(kind);
    let sandbox = watched(&bench, &ORIGIN).await;
    let address = format!("{}/r.git", sandbox.tmp().display());
    run_script(
        &*sandbox,
        "git commit -q --allow-empty -m x; git push -q origin main; git init -q --bare $TMPDIR/fork.git; \
         git remote set-url origin $TMPDIR/fork.git; git remote add fork $TMPDIR/fork.git; git push -q fork HEAD:x",
    )
    .await;
    let change = change(&*sandbox).await;
    assert_eq!(change.after.remotes.keys().collect::<Vec<_>>(), ["origin"]);
    let (origin, head) = (&change.after.remotes["origin"], change.after.head.clone().unwrap());
    assert_eq!((&origin.url, &origin.branches.as_ref().unwrap()["main"]), (&address, &head));
    assert_eq!(change.new_commits.len(), 1);
    let pushes = change.after.pushes.iter().map(|(branch, commit)| (branch.as_str(), commit == &head));
    assert_eq!(pushes.collect::<Vec<_>>(), [("fork/x", true), ("origin/main", true)]);
}

pub(super) async fn no_agent_code_runs_when_git_inspects_the_repository(kind: &Kind) {
    let bench = Bench::new(kind);
    let mut fixtures = git(&[("a", "1\n")]);
    // A project whose programs are looked up in the agent's working directory.
    fixtures.env = vec![("PATH".into(), ".:/usr/local/bin:/usr/bin:/bin".into())];
    fixtures.setup_commands = commands(&ORIGIN);
    let sandbox = bench.try_make(Request { repository: RepositoryDetail::Changes, ..request(fixtures) }).await.unwrap();
    let arm = "printf '#!/bin/sh\\ntouch %s/ran\\n' $HOME > evil; chmod +x evil; evil=$PWD/evil
        for name in core.sshCommand remote.origin.uploadpack core.fsmonitor filter.x.clean filter.x.smudge filter.x.process \
            diff.external core.pager credential.helper core.askPass core.gitProxy gpg.program; do
            git config $name $evil
        done
        git config url.ext::$evil.insteadOf $TMPDIR
        mkdir -p .git/hooks; for hook in post-index-change reference-transaction post-checkout; do cp evil .git/hooks/$hook; done
        echo '* filter=x diff=x' > .gitattributes; git config --global filter.x.clean $evil
        git init -q sub; git -C sub -c user.name=a -c user.email=b commit -q --allow-empty -m s
        git -c core.hooksPath=/dev/null -c filter.x.clean=cat -c filter.x.process= add -A 2> /dev/null
        git -C sub config core.fsmonitor $evil; touch sub/new
        rm -f ~/ran; cp evil git; cp evil ls; cp evil grep; echo 2 > a";
    run_script(&*sandbox, arm).await;
    let _ = fs::remove_file(sandbox.home().join("ran"));
    let change = change(&*sandbox).await;
    assert!(change.after.status.contains(&" M a".to_owned()) || change.after.status.contains(&"MM a".to_owned()));
    assert_eq!(change.after.remotes["origin"].branches.as_ref().unwrap().len(), 1);
    let collected = sandbox.collect().await.unwrap();
    let _ = sandbox.patch(&collected).await;
    assert!(!sandbox.home().join("ran").exists(), "code of the agent ran");
}

pub(super) async fn a_repository_broken_by_the_agent_is_reported_and_does_not_block(kind: &Kind) {
    let bench = Bench::new(kind);
    for ruin in [
        "rm -r .git",
        "rm .git/HEAD; mkfifo .git/HEAD",
        "rm -r .git/objects",
        "rm -r .git/objects; mkdir .git/objects",
        "rm -r .git/refs; ln -s / .git/refs",
        "rm .git/index; ln -s /dev/zero .git/index",
        "rm .git/index; mkfifo .git/index",
        "echo 'ref: /dev/zero' > .git/HEAD",
        "mkfifo .git/refs/heads/pipe",
        "rm -f .git/packed-refs; mkfifo .git/packed-refs",
        "git commit -q --allow-empty -m x; rm -r .git/objects; mkdir .git/objects",
        "git commit -q --allow-empty -m x; rm -r .git/objects; ln -s / .git/objects",
        "echo x > .git/index",
    ] {
        let sandbox = watched(&bench, &[]).await;
        run_script(&*sandbox, ruin).await;
        let collected = sandbox.collect().await.unwrap();
        let lost = collected.repository_change.unwrap().after.lost;
        assert!(lost.is_some() && collected.repository.is_none(), "{ruin}: {lost:?}");
        assert!(!lost.unwrap_or_default().contains("trialrun-git"), "{ruin}: git's own directory is not the user's");
    }
    let bare = bench.make(Fixtures::default()).await;
    run_script(&*bare, "mkdir .git; mkfifo .git/HEAD; mkfifo .git/config").await;
    assert_eq!(bare.collect().await.unwrap().repository, None);
}

pub(super) async fn a_repository_created_by_the_agent_in_another_format_is_read(kind: &Kind) {
    let bench = Bench::new(kind);
    let bare = bench.make(Fixtures::default()).await;
    let commit = "git -c user.name=a -c user.email=b commit -q --allow-empty -m first";
    run_script(&*bare, &format!("git init -q -b new --object-format=sha256 .; {commit}; touch x")).await;
    let made = bare.collect().await.unwrap().repository.unwrap();
    assert_eq!((made.head.unwrap().len(), made.new_commits.len(), made.status), (64, 1, vec!["?? x".to_owned()]));
}

pub(super) async fn remotes_are_queried_concurrently(kind: &Kind) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The service hangs up only after all have connected, so a client that connects to one after another would wait
    // forever.
    let service = std::thread::spawn(move || {
        let all: Vec<_> = (0..4).map(|_| listener.accept().unwrap().0).collect();
        drop(all);
    });
    let bench = Bench::new(kind);
    let add = format!("for n in 1 2 3 4; do git remote add r$n git://127.0.0.1:{port}/r$n; done");
    let sandbox = watched(&bench, &[&add]).await;
    service.join().unwrap();
    let change = change(&*sandbox).await;
    assert_eq!(change.before.remotes.values().filter(|remote| remote.branches.is_none()).count(), 4);
}

pub(super) async fn a_change_with_restored_size_and_time_is_detected(kind: &Kind) {
    let bench = Bench::new(kind);
    for (hide, expected) in [
        ("touch -r a $TMPDIR/ref; echo 3 > a; touch -r $TMPDIR/ref a", " M a"),
        ("touch -d @0 a; git update-index --refresh; echo 3 > a; touch -d @0 a", " M a"),
        ("echo 33 > a; git add a; touch -r a $TMPDIR/ref; echo 44 > a; touch -r $TMPDIR/ref a", "MM a"),
    ] {
        for sandbox in [watched(&bench, &[]).await, bench.make(git(&[("a", "1\n")])).await] {
            run_script(&*sandbox, hide).await;
            assert_eq!(sandbox.collect().await.unwrap().repository.unwrap().status, [expected], "{hide}");
        }
    }
}

/// Returns the output of a script in the grading tree, or its error.
async fn graded(sandbox: &dyn Sandbox, script: &str) -> String {
    let copy = sandbox.copy().await.unwrap();
    copy.prepare().await.unwrap();
    let command = copy.command(copy.shell().as_ref(), &["-c".as_ref(), script.as_ref()]);
    let output = run(command, TIMEOUT, 1 << 16).await.unwrap();
    let text = format!("{}{}", output.stdout.text(), output.stderr.text()).trim_end().to_owned();
    copy.close().await.unwrap();
    text
}

/// In every row, the agent changes `a`, leaves `left` and tries to hide both.
pub(super) async fn commands_see_the_repository_that_inspection_sees(kind: &Kind) {
    let bench = Bench::new(kind);
    for hide in [
        ":",
        "git update-index --assume-unchanged a",
        "git update-index --skip-worktree a",
        "git update-index --split-index; git update-index --fsmonitor --untracked-cache; git update-index --skip-worktree a",
        "touch -r keep a",
        "git config core.excludesFile $PWD/x; git config status.showUntrackedFiles no; echo '*' > .git/info/exclude",
        "printf '* filter=f\n' > .git/info/attributes; git config filter.f.clean 'git show HEAD:a'",
        "git config core.worktree $TMPDIR",
        "git config core.fsmonitor true; printf '#!/bin/sh\n' > .git/hooks/x",
        "git config --global status.showUntrackedFiles no; git config --global core.excludesFile /x",
        "mv .git/refs $TMPDIR/r; git init -q $TMPDIR/other; mkdir .git/refs; cp -r $TMPDIR/r/* .git/refs",
        "git replace HEAD $(git commit-tree -m r $(git write-tree))",
        "echo $(git rev-parse HEAD) > .git/shallow; echo x > .git/info/grafts",
        "mkdir -p $TMPDIR/o; echo $TMPDIR/o > .git/objects/info/alternates",
        "git commit-graph write --reachable; git multi-pack-index write",
        "git pack-refs --all; git gc -q",
        "git refs migrate --ref-format=reftable",
        "echo '*' > .gitignore",
        "mkdir -p sub && printf '*\n' > sub/.gitignore && printf 'left\n.gitignore\n' > .gitignore",
    ] {
        let sandbox = bench.make(git(&[("a", "1\n"), ("keep", "1\n"), ("sub/b", "1\n")])).await;
        run_script(&*sandbox, &format!("echo 2 > a; echo x > left; {hide}")).await;
        let status = sandbox.collect().await.unwrap().repository.unwrap_or_default().status;
        let of_files = |status: &[String]| {
            let files = status.iter().filter(|line| !line.ends_with(".gitignore"));
            files.cloned().collect::<Vec<_>>()
        };
        assert_eq!(of_files(&status), [" M a", "?? left"], "{hide}");
        let script = "git status --porcelain; git diff --stat -- a | tail -1; git log --format=%s";
        let seen: Vec<String> = graded(&*sandbox, script).await.lines().map(str::to_owned).collect();
        let expected =
            [" M a", "?? left", " 1 file changed, 1 insertion(+), 1 deletion(-)", "trialrun: fixture baseline"];
        assert_eq!(of_files(&seen), expected, "{hide}");
    }
    // A repository that is gone or elsewhere is the fixture's.
    for hide in [
        "rm -rf .git",
        "mv .git $HOME/g; ln -s $HOME/g .git; git config status.showUntrackedFiles no",
        "mv .git $HOME/g; echo gitdir: $HOME/g > .git; git update-index --assume-unchanged a",
        "rm -rf .git/objects",
        "echo x > .git/HEAD",
        "head -c 100 /dev/urandom > .git/index",
    ] {
        let sandbox = bench.make(git(&[("a", "1\n")])).await;
        run_script(&*sandbox, &format!("echo 2 > a; echo x > left; {hide}")).await;
        assert_eq!(graded(&*sandbox, "git status --porcelain").await, " M a\n?? left", "{hide}");
    }
}

pub(super) async fn what_the_agent_did_in_git_is_in_the_grading_tree(kind: &Kind) {
    let bench = Bench::new(kind);
    let sandbox = bench.make(git(&[("a", "1\n")])).await;
    let work = "git switch -q -c feature && echo 2 > a && git commit -qam second && git tag v1 && echo 3 > b && git add b \
                && git rm -q --cached a && git remote add fork https://host/fork.git \
                && git update-ref refs/remotes/fork/main HEAD && git symbolic-ref refs/remotes/fork/HEAD refs/remotes/fork/main \
                && git init -q nested && git -C nested config core.fsmonitor x && echo 1 > nested/c \
                && git -C nested add c && git -C nested -c user.name=a -c user.email=a commit -qm inner && git init -q --bare bare.git \
                && for n in 2 3; do echo $n > nested/c && git -C nested -c user.name=a -c user.email=a stash -q || exit; done \
                && ln -sf /dev/zero .git/logs/refs/heads/feature";
    assert_eq!(run_script(&*sandbox, work).await, "");
    let script = "git status --porcelain --branch; git log --format=%s; git tag; git rev-parse --symbolic-full-name fork/HEAD; \
                  git remote get-url fork; git -C nested log --format=%s; git -C nested status --porcelain; \
                  git -C nested config core.fsmonitor; git -C nested stash list --format=%gd; git reflog --format=%gs | head -1; \
                  git -C bare.git rev-parse --is-bare-repository; git fsck 2>&1";
    let expected = "## feature\nA  b\nD  a\n?? a\n?? bare.git/\n?? nested/\nsecond\ntrialrun: fixture baseline\nv1\n\
                    refs/remotes/fork/main\nhttps://host/fork.git\ninner\nfalse\nstash@{0}\nstash@{1}\ncommit: second\ntrue";
    let seen = graded(&*sandbox, script).await;
    let mut lines: Vec<&str> = seen.lines().collect();
    let mut wanted: Vec<&str> = expected.lines().collect();
    lines[..6].sort_unstable();
    wanted[..6].sort_unstable();
    assert_eq!(lines, wanted);
}

pub(super) async fn an_object_with_a_forged_name_is_not_taken(kind: &Kind) {
    let bench = Bench::new(kind);
    let sandbox = bench.make(git(&[("a", "1\n")])).await;
    // The commit's blob gets the content of another one.
    let forge = "echo 2 > a; git commit -qam second; good=$(git rev-parse HEAD:a); bad=$(echo forged | git hash-object -w --stdin); \
                 path() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }; \
                 chmod u+w $(path $good); cp $(path $bad) $(path $good); git show HEAD:a";
    assert_eq!(run_script(&*sandbox, forge).await, "forged");
    assert_eq!(graded(&*sandbox, "git log --format=%s").await, "trialrun: fixture baseline");
    assert_eq!(sandbox.collect().await.unwrap().repository, None);
}

pub(super) async fn the_home_of_commands_is_as_it_was_given(kind: &Kind) {
    let bench = Bench::new(kind);
    let setup = "echo given > $HOME/of-setup; echo {} > package.json";
    let fixtures = Fixtures { setup_commands: commands(&[setup]), ..git(&[("a", "1\n")]) };
    let sandbox = bench.make(fixtures).await;
    let plant =
        "echo changed > $HOME/of-setup; echo exit > $HOME/.bash_profile; echo x > $TMPDIR/y; echo x > ../conftest.py";
    run_script(&*sandbox, plant).await;
    let script = "cat $HOME/of-setup; ls -A $HOME $TMPDIR | grep -v :; ls ..; cat $TRIALRUN_AGENT_HOME/of-setup";
    let seen = graded(&*sandbox, script).await;
    assert_eq!(seen, "given\nof-setup\n\nagent-home\nhome\nowner\ntmp\nwork\nchanged");
    let copy = sandbox.copy().await.unwrap();
    assert!(copy.added().is_empty(), "{:?}", copy.added());
    copy.close().await.unwrap();
    let bare = bench.make(git(&[("a", "1\n")])).await;
    run_script(&*bare, "echo x > $HOME/y").await;
    assert_eq!(graded(&*bare, "ls -A $HOME; cat $TRIALRUN_AGENT_HOME/y").await, "x");
}

pub(super) async fn removing_or_closing_the_sandbox_counts_against_the_agent(kind: &Kind) {
    let bench = Bench::new(kind);
    for (ruin, reason) in [
        ("rm -r \"$PWD\"", "the agent removed its working directory"),
        ("rm -r \"$PWD\"; ln -s / \"$PWD\"", "the agent removed its working directory"),
        ("chmod 000 .", "the agent closed its working directory"),
        ("chmod 000 ..", "the agent closed its working directory"),
        (
            "d=$(printf %0250d 0); for i in $(seq 17); do mkdir $d; cd -P $d; done; echo x > hidden",
            "the agent left directories nested so deeply that git cannot read them",
        ),
    ] {
        if kind.name != "local" && (ruin.starts_with("rm") || ruin.ends_with("..")) {
            // The working directory is a mount, and its parent directory is not the real one.
            continue;
        }
        let sandbox = watched(&bench, &[]).await;
        run_script(&*sandbox, ruin).await;
        let error = sandbox.collect().await.unwrap_err();
        assert!(matches!(&error, SandboxError::Ruined { reason: describe } if describe == reason), "{ruin}: {error}");
    }
    for (ruin, path) in [
        ("mkfifo .gitignore", ".gitignore"),
        ("mkdir -p sub; mkfifo sub/.gitignore; echo x > sub/a", "sub/.gitignore"),
        ("mkdir sub; cd sub; git init -q .; rm .git/HEAD; mkfifo .git/HEAD", "sub/.git/HEAD"),
    ] {
        for sandbox in [watched(&bench, &[]).await, bench.make(git(&[("a", "1\n")])).await] {
            run_script(&*sandbox, ruin).await;
            let error = sandbox.collect().await.unwrap_err();
            let reason = format!("the agent made `{path}` a pipe, a socket or a device, which git would wait for");
            assert!(
                matches!(&error, SandboxError::Ruined { reason: describe } if *describe == reason),
                "{ruin}: {error}"
            );
        }
    }
    let sandbox = watched(&bench, &[]).await;
    run_script(&*sandbox, "mkdir new; touch new/x; chmod 000 a new").await;
    let collected = sandbox.collect().await.unwrap();
    assert_eq!(changed(&collected), [("new/x", Change::Added)]);
    assert_eq!(fs::read_to_string(sandbox.work().join("a")).unwrap(), "1\n");
}

pub(super) async fn files_next_to_the_working_directory_are_reported(kind: &Kind) {
    let bench = Bench::new(kind);
    let sandbox = bench.make(Fixtures::default()).await;
    assert_eq!(sandbox.collect().await.unwrap().outside_changes, [] as [&str; 0]);
    run_script(&*sandbox, "echo x > ../note; mkdir ../dir; echo x > ~/.cache; echo x > $TMPDIR/x; echo x > in").await;
    let collected = sandbox.collect().await.unwrap();
    let base = sandbox.work().parent().unwrap();
    let mut expected: Vec<String> = ["dir", "note"].map(|name| base.join(name).to_str().unwrap().to_owned()).into();
    if kind.name != "local" {
        // Processes see this directory at a different path.
        expected.clear();
    }
    assert_eq!(collected.outside_changes, expected);
    assert_eq!(changed(&collected), [("in", Change::Added)]);
    assert_eq!(collected.sandbox.as_deref(), sandbox.work().to_str());
    assert_eq!(collected.home.as_deref(), sandbox.home().to_str());
    assert_eq!(collected.tmp.as_deref(), sandbox.tmp().to_str());
}

pub(super) async fn processes_see_only_sandbox_directories_and_fixture_variables(kind: &Kind) {
    let env = [("HOME", "/home/u"), ("OPENAI_API_KEY", "sk-test"), ("LANG", "C.UTF-8")];
    let bench = Bench::with_env(kind, &env);
    let env = [("COLOUR", "green"), ("TERM", "vt100")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let fixtures = Fixtures {
        env: env.to_vec(),
        setup_commands: commands(&["echo $COLOUR $HOME > seen; test ! -t 0"]),
        ..Fixtures::default()
    };
    let sandbox = bench.make(fixtures).await;
    let home = sandbox.home().to_str().unwrap();
    assert_eq!(fs::read_to_string(sandbox.work().join("seen")).unwrap(), format!("green {home}\n"));
    assert_eq!(changed(&sandbox.collect().await.unwrap()), [], "files created by setup are not the agent's");
    // Shells and containers set some variables themselves.
    let own = "-e '^_$' -e PWD -e SHLVL -e '^HOSTNAME$' -e '^container$' -e '_proxy$'";
    let script = format!("env | sed 's/=.*//' | grep -vi {own} | sort | tr '\\n' ' '");
    let names = run_script(&*sandbox, &script).await;
    assert_eq!(
        names,
        "COLOUR GIT_CEILING_DIRECTORIES GIT_CONFIG_NOSYSTEM GIT_TERMINAL_PROMPT HOME LANG PATH TERM TMPDIR ".trim_end()
    );
    let extra = [("TERM".to_owned(), "xterm".to_owned()), ("MORE".to_owned(), "x".to_owned())];
    let env = sandbox.env(&extra);
    assert_eq!((env["TERM"].as_str(), env["MORE"].as_str()), ("vt100", "x"), "the fixture has the last word");
    assert_eq!(run_script(&*sandbox, "pwd").await, sandbox.work().to_str().unwrap());
    let modes = [sandbox.home(), sandbox.tmp(), sandbox.work().parent().unwrap()]
        .map(|path| path.metadata().unwrap().permissions().mode() & 0o077);
    assert_eq!(modes[2], 0, "no other user has access");
}

pub(super) async fn changes_by_setup_commands_are_part_of_the_baseline(kind: &Kind) {
    let bench = Bench::new(kind);
    let fixtures = Fixtures {
        setup_commands: commands(&["echo 2 > a && git commit -qam setup", "echo 3 > a", "echo 1 > b"]),
        ..git(&[("a", "1\n")])
    };
    let sandbox = bench.make(fixtures).await;
    let collected = sandbox.collect().await.unwrap();
    assert_eq!(changed(&collected), []);
    let repository = collected.repository.unwrap();
    assert_eq!(repository.new_commits, [] as [&str; 0]);
    assert_eq!(repository.status, [" M a", "?? b"]);
    run_script(&*sandbox, "echo 4 > a; git commit -qam agent").await;
    let collected = sandbox.collect().await.unwrap();
    assert_eq!(changed(&collected), [("a", Change::Modified)]);
    assert_eq!(collected.repository.unwrap().new_commits.len(), 1);
}

pub(super) async fn a_setup_command_that_fails_is_quoted_and_leaves_nothing_behind(kind: &Kind) {
    let mut bench = Bench::new(kind);
    let failing = |command: &str| Fixtures { setup_commands: commands(&["true", command]), ..git(&[("a", "1\n")]) };
    let error = bench.try_make(request(failing("echo why >&2; exit 3"))).await.err().unwrap();
    assert_eq!(error.to_string(), "setup command `echo why >&2; exit 3` failed with exit code 3: why");
    let hanging = Request {
        setup_timeout: Duration::from_millis(300),
        ..request(Fixtures { setup_commands: commands(&["setsid sleep 1000 & sleep 1000"]), ..Fixtures::default() })
    };
    let error = bench.try_make(hanging).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "setup command `setsid sleep 1000 & sleep 1000` did not finish within 0.3 s (setup_timeout)"
    );
    bench.factory = None;
    assert_eq!(bench.left(), [] as [PathBuf; 0]);
}

pub(super) async fn a_skill_is_installed_without_its_answers_and_git_does_not_see_it(kind: &Kind) {
    let bench = Bench::new(kind);
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("secret"), "s").unwrap();
    let skill = small_skill(elsewhere.path());
    let directory = skill.directory.clone().unwrap();
    symlink("../secret", directory.join("link")).unwrap();
    fs::create_dir_all(directory.join("scripts/tests")).unwrap();
    fs::write(directory.join("scripts/tests/kept"), "x").unwrap();
    fs::write(directory.join("tool"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(directory.join("tool"), PermissionsExt::from_mode(0o755)).unwrap();
    let with = |fixtures| Request { skill: Some((Arc::clone(&skill), ".claude/skills".into())), ..request(fixtures) };

    // The fixture's own .gitignore says the opposite.
    let sandbox = bench.try_make(with(git(&[(".gitignore", "!.claude/\n*.log\n")]))).await.unwrap();
    let installed = sandbox.work().join(".claude/skills/sk");
    assert!(!installed.join("tests").exists());
    assert!(installed.join("scripts/tests/kept").exists());
    assert_eq!(fs::read_link(installed.join("link")).unwrap(), Path::new("../secret"));
    assert_eq!(installed.join("tool").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(
        run_script(&*sandbox, "git status --porcelain; git ls-files; cat .gitignore").await,
        ".gitignore\n!.claude/\n*.log"
    );
    assert_eq!(changed(&sandbox.collect().await.unwrap()), []);
    run_script(&*sandbox, "echo more >> .claude/skills/sk/SKILL.md").await;
    assert_eq!(changed(&sandbox.collect().await.unwrap()), [(".claude/skills/sk/SKILL.md", Change::Modified)]);

    let without_git = bench.try_make(with(Fixtures::default())).await.unwrap();
    assert!(without_git.work().join(".claude/skills/sk/SKILL.md").exists());
    assert!(!without_git.work().join(".git").exists());
}

pub(super) async fn bytes_modes_and_links_are_preserved(kind: &Kind) {
    let bench = Bench::new(kind);
    let tree = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    fs::write(tree.path().join("from-tree"), &bytes).unwrap();
    symlink("/etc/hostname", tree.path().join("absolute")).unwrap();
    let fixtures = Fixtures {
        copy_trees: vec![CopyTree { from: tree.path().into(), to: ".".into(), source: place() }],
        files_committed: vec![
            FixtureFile { content: bytes.as_slice().into(), ..file("binary", "") },
            FixtureFile { executable: true, ..file("tool", "#!/bin/sh\necho ran\n") },
        ],
        ..git(&[])
    };
    let sandbox = bench.make(fixtures).await;
    for name in ["from-tree", "binary"] {
        assert_eq!(fs::read(sandbox.work().join(name)).unwrap(), bytes);
    }
    assert_eq!(fs::read_link(sandbox.work().join("absolute")).unwrap(), Path::new("/etc/hostname"));
    let script = "./tool; git show HEAD:binary | cmp - binary && git ls-files -s | cut -d' ' -f1,3 | sed 's/^\\(......\\) 0./\\1 /'";
    assert_eq!(
        run_script(&*sandbox, script).await,
        "ran\n120000 absolute\n100644 binary\n100644 from-tree\n100755 tool"
    );
}

pub(super) async fn a_fixture_cannot_write_outside_even_through_its_own_links(kind: &Kind) {
    let mut bench = Bench::new(kind);
    let tree = tempfile::tempdir().unwrap();
    let target = tempfile::tempdir().unwrap();
    symlink(target.path(), tree.path().join("door")).unwrap();
    let through = Fixtures {
        copy_trees: vec![CopyTree { from: tree.path().into(), to: ".".into(), source: place() }],
        files_committed: vec![file("door/x", "x")],
        ..Fixtures::default()
    };
    let error = bench.try_make(request(through)).await.err().unwrap();
    assert_eq!(error.to_string(), "files_committed: door/x escapes the sandbox through the link door");
    assert_eq!(error.excerpt(), Some(&place()));
    for path in ["../x", "/etc/zzz", "a/../../x"] {
        let fixtures = Fixtures { files_unstaged: vec![file(path, "x")], ..Fixtures::default() };
        let error = bench.try_make(request(fixtures)).await.err().unwrap();
        assert_eq!(error.to_string(), format!("files_unstaged: {path} escapes the sandbox"));
    }
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
    bench.factory = None;
    assert_eq!(bench.left(), [] as [PathBuf; 0]);
}

pub(super) async fn a_tree_that_is_a_repository_keeps_its_history_and_runs_no_hook(kind: &Kind) {
    let bench = Bench::new(kind);
    let origin = bench.make(git(&[("a", "1\n")])).await;
    run_script(&*origin, "mkdir .git/hooks; printf '#!/bin/sh\\ntouch hooked\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit").await;
    let fixtures = Fixtures {
        copy_trees: vec![CopyTree { from: origin.work().into(), to: "".into(), source: place() }],
        ..git(&[("b", "2\n")])
    };
    let sandbox = bench.make(fixtures).await;
    assert_eq!(
        run_script(&*sandbox, "git log --format=%s; git status --porcelain; ls").await,
        "trialrun: fixture baseline\ntrialrun: fixture baseline\na\nb"
    );
    run_script(&*sandbox, "git commit -q --allow-empty -m x").await;
    assert!(sandbox.work().join("hooked").exists(), "the agent's own commits are not ours to change");
}

pub(super) async fn staged_paths_are_literal_and_not_patterns(kind: &Kind) {
    let bench = Bench::new(kind);
    let fixtures = Fixtures {
        files_staged: vec![file("*.txt", "x"), file("-dash", "x")],
        files_unstaged: vec![file("other.txt", "x")],
        ..git(&[])
    };
    let sandbox = bench.make(fixtures).await;
    assert_eq!(run_script(&*sandbox, "git status --porcelain").await, "A  *.txt\nA  -dash\n?? other.txt");
}

pub(super) async fn concurrent_sandboxes_share_a_template_and_are_all_removed(kind: &Kind) {
    let mut bench = Bench::new(kind);
    let fixtures = Arc::new(git(&[("a", "1\n")]));
    let requests = (0..8).map(|_| Request { fixtures: Arc::clone(&fixtures), ..request(Fixtures::default()) });
    let factory = Arc::new(bench.factory.take().unwrap());
    let mut making = tokio::task::JoinSet::new();
    for request in requests {
        let factory = Arc::clone(&factory);
        making.spawn(async move { factory.make(request).await.unwrap() });
    }
    let sandboxes = making.join_all().await;
    assert_eq!(bench.left().len(), 8 + 1, "eight sandboxes and their template");
    assert_eq!(bench.registry.directories().len(), 9);
    let survey = prune::survey(bench.temp.path(), Duration::ZERO, std::time::SystemTime::now()).unwrap();
    assert_eq!((survey.live, survey.orphans.len()), (9, 0));
    // Whether closed once, closed twice or dropped, each is removed.
    let (close, drop_them) = sandboxes.split_at(4);
    for sandbox in close {
        sandbox.close().await.unwrap();
        sandbox.close().await.unwrap();
    }
    assert_eq!(bench.left().len(), 5);
    drop(drop_them.to_vec());
    drop(sandboxes);
    assert_eq!(bench.left().len(), 1);
    drop(factory);
    assert_eq!(bench.left(), [] as [PathBuf; 0]);
    assert_eq!(bench.registry.directories(), [] as [PathBuf; 0]);
}

pub(super) async fn a_kept_sandbox_remains_but_is_not_in_use_after_its_owner_ended(kind: &Kind) {
    let mut bench = Bench::new(kind);
    let sandbox = bench.try_make(Request { keep: true, ..request(git(&[("a", "1\n")])) }).await.unwrap();
    let base = sandbox.work().parent().unwrap().to_owned();
    sandbox.close().await.unwrap();
    drop(sandbox);
    bench.factory = None;
    assert_eq!(bench.left(), std::slice::from_ref(&base), "the template is not kept");
    // As if the process that created it had ended: its owner file names a different process.
    fs::write(base.join("owner"), "pid 1\nborn 1\nfor sandbox\n").unwrap();
    let survey = prune::survey(bench.temp.path(), Duration::ZERO, std::time::SystemTime::now()).unwrap();
    assert_eq!(survey.orphans.len(), 1);
    assert!(prune::remove(&survey.orphans[0]).unwrap());
    assert_eq!(bench.left(), [] as [PathBuf; 0]);
}

pub(super) async fn the_end_of_a_run_removes_everything_and_rejects_new_sandboxes(kind: &Kind) {
    let bench = Bench::new(kind);
    let sandbox = bench.make(git(&[("a", "1\n")])).await;
    assert_eq!(bench.registry.remove_all().len(), 0);
    assert_eq!(bench.left(), [] as [PathBuf; 0]);
    let error = bench.try_make(request(Fixtures::default())).await.err().unwrap();
    assert!(matches!(error, SandboxError::Ending));
    drop(sandbox);
}

pub(super) async fn abandoned_creation_leaves_nothing_behind(kind: &Kind) {
    let mut bench = Bench::new(kind);
    let outside = tempfile::tempdir().unwrap();
    let pipe = outside.path().join("began");
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let command = format!("echo > '{}'; sleep 1000", pipe.display());
    let fixtures = Fixtures { setup_commands: commands(&[&command]), ..git(&[("a", "1\n")]) };
    let began = tokio::task::spawn_blocking(move || fs::read(pipe));
    tokio::select! {
        _ = bench.try_make(request(fixtures)) => panic!("the setup command never ends"),
        read = began => assert_eq!(read.unwrap().unwrap(), b"\n"),
    }
    bench.factory = None;
    assert_eq!(bench.left(), [] as [PathBuf; 0]);
}

#[test]
fn sandbox_kinds_are_found_by_name() {
    assert_eq!(
        SANDBOXES.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
        ["local", "isolated", "docker", "podman", "daytona"]
    );
    let host = Host {
        env: BTreeMap::new(),
        home: None,
        temp: "/nowhere/at/all".into(),
        supervisor: Supervisor::unchecked("trialrun").unwrap(),
    };
    let refused = |name| SandboxFactory::open(name, &host).err().unwrap().to_string();
    assert_eq!(refused("moon"), "unknown sandbox `moon`");
    assert!(refused("local").starts_with("cannot make sandboxes in /nowhere/at/all: "));
}

// The vectors of ai-tester, whose sandboxes these replace.

const VECTORS: &str = include_str!("../../vectors/sandbox.jsonl");

/// Intended differences from the vectors: label, field, the value here, and the reason. Names of this program are
/// replaced by those of ai-tester.
const DIFFERENCES: &[(&str, &str, &str, &str)] = &[
    ("empty", "dirnamePrefix", "ai-tester-sandbox-", UNNAMED),
    ("git only", "dirnamePrefix", "ai-tester-sandbox-", UNNAMED),
    ("git only + skill", "dirnamePrefix", "ai-tester-sandbox-", UNNAMED),
    ("branch+staged+unstaged", "dirnamePrefix", "ai-tester-sandbox-", UNNAMED),
    ("branch without git", "dirnamePrefix", "ai-tester-sandbox-", UNNAMED),
    ("copy tree", "dirnamePrefix", "ai-tester-sandbox-", UNNAMED),
    ("setup", "dirnamePrefix", "ai-tester-sandbox-", UNNAMED),
    ("git only", "files", r#"[""]"#, NO_FILE),
    ("git only", "tracked", "", NO_FILE),
    ("git only + skill", "tracked", "", NO_FILE),
    ("setup", "files", r#"["./env.txt"]"#, NO_FILE),
    ("setup", "tracked", "", NO_FILE),
    ("git only", "status", "## main", MAIN),
    ("git only", "log", "ai-tester: initial empty commit|ai-tester|ai-tester@example.com|HEAD -> main", MAIN),
    (
        "git only + skill",
        "files",
        r#"["./.claude/skills/sk/SKILL.md"]"#,
        "tests are not installed, and no `.gitignore` is left behind",
    ),
    ("git only + skill", "status", "## main", "no `.gitignore` is left behind, and the branch is always `main`"),
    ("git only + skill", "log", "ai-tester: initial empty commit|ai-tester|ai-tester@example.com|HEAD -> main", MAIN),
    (
        "branch+staged+unstaged",
        "log",
        "ai-tester: fixture baseline|ai-tester|ai-tester@example.com|HEAD -> feature/x, main",
        MAIN,
    ),
    ("copy tree", "status", "## main", MAIN),
    ("copy tree", "log", "ai-tester: fixture baseline|ai-tester|ai-tester@example.com|HEAD -> main", MAIN),
    ("setup", "status", "## main\n?? env.txt", MAIN),
    ("setup", "log", "ai-tester: initial empty commit|ai-tester|ai-tester@example.com|HEAD -> main, tag: v1", MAIN),
    ("setup", "envfile", "green:HOME\n", "`fixtures.env` is applied, and `HOME` is the sandbox's own"),
];

const UNNAMED: &str = "the agent sees the path, and must not learn from it what it is tested for";

const NO_FILE: &str = "an empty commit needs no file that tells the agent where it is";

const MAIN: &str = "issue: fixed branch `main`";

/// Returns the fixture for the label of a vector.
fn vector_fixture(label: &str, tree: &Path) -> Fixtures {
    let copy = |to: &str| CopyTree { from: tree.to_owned(), to: to.into(), source: place() };
    match label {
        "empty" => Fixtures::default(),
        "git only" | "git only + skill" => git(&[]),
        "branch+staged+unstaged" => Fixtures {
            git_branch: Some("feature/x".into()),
            files_staged: vec![file("a", "2"), file("s", "1")],
            files_unstaged: vec![file("s", "22"), file("u", "1")],
            ..git(&[("a", "1")])
        },
        "branch without git" => {
            Fixtures { git_branch: Some("x".into()), files_staged: vec![file("s", "1")], ..Fixtures::default() }
        }
        "copy tree" => Fixtures { copy_trees: vec![copy(""), copy("v/d")], ..git(&[]) },
        "copy escapes" => Fixtures { copy_trees: vec![copy("../out")], ..Fixtures::default() },
        "abs path inside tmp" => Fixtures { files_committed: vec![file("/etc/zzz", "1")], ..Fixtures::default() },
        "setup" => Fixtures {
            setup_commands: commands(&["echo \"$COLOUR:$HOME\" > env.txt", "git tag v1"]),
            env: vec![("COLOUR".into(), "green".into())],
            ..git(&[])
        },
        "staged ignored file" => {
            Fixtures { files_staged: vec![file("x.log", "1")], ..git(&[(".gitignore", "*.log\n")]) }
        }
        other => panic!("no fixture for the vector {other}"),
    }
}

/// Returns the values of the vector's fields here, with the names of ai-tester.
async fn observed(label: &str, bench: &Bench, skill: &Arc<Skill>, tree: &Path) -> BTreeMap<&'static str, String> {
    let skill = (label == "git only + skill").then(|| (Arc::clone(skill), ".claude/skills".to_owned()));
    let request = Request { skill: skill.clone(), ..request(vector_fixture(label, tree)) };
    let Ok(sandbox) = bench.try_make(request).await else {
        return BTreeMap::from([("error", "refused".to_owned())]);
    };
    let base = sandbox.work().parent().unwrap().file_name().unwrap().to_str().unwrap();
    let prefix = base.rsplitn(3, '-').last().unwrap();
    let ours = |text: String| text.replace("trialrun", "ai-tester");
    let find = "find . -path ./.git -prune -o ! -type d -print";
    let mut files: Vec<String> = ours(run_script(&*sandbox, find).await).lines().map(str::to_owned).collect();
    files.sort();
    let mut fields = BTreeMap::from([
        ("dirnamePrefix", ours(format!("{prefix}-"))),
        ("files", serde_json::to_string(&if files.is_empty() { vec![String::new()] } else { files }).unwrap()),
        ("status", ours(run_script(&*sandbox, "git status --short --branch").await)),
        ("log", ours(run_script(&*sandbox, "git log --format='%s|%an|%ae|%D'").await)),
        ("tracked", ours(run_script(&*sandbox, "git ls-files").await)),
    ]);
    if let Some((skill, folder)) = skill {
        let installed = format!("{folder}/{}", skill.name);
        assert!(sandbox.work().join(&installed).is_dir());
        fields.insert("skillInstallPath", installed);
    }
    if let Ok(text) = fs::read_to_string(sandbox.work().join("env.txt")) {
        fields.insert("envfile", text.replace(sandbox.home().to_str().unwrap(), "HOME"));
    }
    fields
}

pub(super) async fn every_vector_agrees_or_differs_as_intended(kind: &Kind) {
    let bench = Bench::new(kind);
    let project = tempfile::tempdir().unwrap();
    let skill = small_skill(project.path());
    let tree = project.path().join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join(".dot"), "x").unwrap();
    fs::write(tree.join("sub/f"), "x").unwrap();
    symlink("sub/f", tree.join("link")).unwrap();

    let (mut all, mut agree, mut listed, mut wrong) = (0, 0, 0, Vec::new());
    for line in VECTORS.lines() {
        let vector: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        let label = vector["label"].as_str().unwrap();
        let observed = observed(label, &bench, &skill, &tree).await;
        for (field, value) in vector.iter().filter(|(field, value)| *field != "label" && !value.is_null()) {
            all += 1;
            let theirs = match value {
                // Only checks that it is rejected, because the message names paths on another machine.
                serde_json::Value::String(_) if field == "error" => "refused".to_owned(),
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let ours = observed.get(field.as_str()).cloned().unwrap_or_default();
            let intended = DIFFERENCES.iter().find(|(of, at, ..)| *of == label && *at == field.as_str());
            match intended {
                None if ours == theirs => agree += 1,
                Some((_, _, intended, _)) if ours == *intended && ours != theirs => listed += 1,
                Some(_) if ours == theirs => wrong.push(format!("{label}.{field} agrees after all")),
                _ => wrong.push(format!("{label}.{field}: ours {ours:?}, theirs {theirs:?}")),
            }
        }
    }
    // Written past the capture of passing tests, because the count is for whoever reads the test output.
    let counted = format!("sandbox vectors: {agree} agree + {listed} listed = {all}");
    std::io::Write::write_all(&mut std::io::stdout(), format!("\n{counted}\n").as_bytes()).unwrap();
    assert_eq!(wrong, [] as [&str; 0]);
    assert_eq!((agree + listed, listed), (all, DIFFERENCES.len()));
}
