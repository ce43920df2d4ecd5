//! The contract for isolated sandboxes, and what only they do.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::{Fixtures, NetworkPolicy};
use sandbox::supervise::{Limits, Network, Supervisor, run};
use sandbox::{Host, Registry, RepositoryDetail, Request, Sandbox, SandboxFactory, SandboxOptions};
use tokio::io::AsyncWriteExt;

use super::contract::directory_tests;
use super::kind::Kind;
use super::processes::process_tests;

fn kind() -> Kind {
    Kind::of("isolated")
}

directory_tests!(kind, [#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]]);
process_tests!(kind, [#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]]);

/// A user with a home and a project in it.
struct Machine {
    root: tempfile::TempDir,
    host: Host,
    options: SandboxOptions,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().canonicalize().unwrap().join(name);
        for folder in ["temp", "home/project"] {
            fs::create_dir_all(place(folder)).unwrap();
        }
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", place("home/.local/bin").display());
        let host = Host {
            env: BTreeMap::from([("PATH".to_owned(), path), ("SECRET_TOKEN".to_owned(), "dummy-planted".to_owned())]),
            home: Some(place("home")),
            temp: place("temp"),
            supervisor: Supervisor::new(env!("CARGO_BIN_EXE_trialrun")).unwrap(),
        };
        let options = SandboxOptions { private: vec![place("home/project")], ..SandboxOptions::default() };
        Self { root, host, options }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, content: &str) -> PathBuf {
        let file = self.place(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// Returns a new sandbox.
    async fn sandbox(&self) -> Arc<dyn Sandbox> {
        let factory = SandboxFactory::open_isolated("isolated", &self.host, &Registry::new(), &self.options).unwrap();
        let request = Request {
            name: "suite::case#1".to_owned(),
            fixtures: Arc::new(Fixtures::default()),
            skill: None,
            graded: model::Graded::default(),
            repository: RepositoryDetail::After,
            source_repo: None,
            remote: model::RemoteMode::Isolated,
            extra_env: Vec::new(),
            setup_timeout: Duration::from_secs(30),
            network: if self.options.network.is_open() { Network::Open } else { Network::None },
            faults: Vec::new(),
            canaries: Vec::new(),
            keep: false,
            only_graded: false,
        };
        factory.make(request).await.unwrap()
    }
}

/// Returns the output of a program in the sandbox, from both streams.
async fn output(sandbox: &dyn Sandbox, program: &str, args: &[&str]) -> String {
    let args: Vec<_> = args.iter().map(AsRef::as_ref).collect();
    let command = sandbox.command(program.as_ref(), &args, &[]);
    let output = run(command, Duration::from_secs(60), 1 << 20).await.unwrap();
    format!("{}{}", output.stdout.text(), output.stderr.text()).trim().to_owned()
}

async fn shell(sandbox: &dyn Sandbox, script: &str) -> String {
    output(sandbox, "/bin/sh", &["-c", script]).await
}

/// Between two messages, the agent's processes run while the commands of assertions about a reply work in a copy.
#[tokio::test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
async fn a_process_of_the_agent_does_not_see_the_copy_of_commands() {
    let machine = Machine::new();
    let sandbox = machine.sandbox().await;
    let copy = sandbox.copy().await.unwrap();
    let real = copy.work();
    assert!(real.is_dir() && real != sandbox.work());
    let forge = format!("mkdir -p {0} && echo forged > {0}/result.txt; ls -A {0}/../..", real.display());
    shell(&*sandbox, &forge).await;
    assert!(!real.join("result.txt").exists());
    let command = copy.command("/bin/ls".as_ref(), &["-A".as_ref()]);
    let output = run(command, Duration::from_secs(60), 1 << 20).await.unwrap();
    assert_eq!((output.stdout.text().trim(), output.status.code()), ("", Some(0)));
}

#[tokio::test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
async fn a_process_sees_the_system_and_its_sandbox_and_nothing_else() {
    let machine = Machine::new();
    let secret = machine.write("home/project/secret", "answer");
    let sandbox = machine.sandbox().await;
    let sees = |path: &Path| format!("ls {} > /dev/null 2>&1 && echo yes || echo no", path.display());
    for (path, expected) in [
        (Path::new("/usr/bin"), "yes"),
        (sandbox.work(), "yes"),
        (sandbox.home(), "yes"),
        (&*secret, "no"),
        (&machine.place("home"), "no"),
        (&sandbox.work().parent().unwrap().join("owner"), "no"),
    ] {
        assert_eq!(shell(&*sandbox, &sees(path)).await, expected, "{}", path.display());
    }
    let neighbour = machine.sandbox().await;
    assert_eq!(shell(&*sandbox, &sees(neighbour.work())).await, "no");
    // The first process and the shell.
    assert_eq!(shell(&*sandbox, "set -- /proc/[0-9]*; echo $#").await, "2");
}

#[tokio::test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
async fn only_the_directories_of_the_sandbox_can_be_written() {
    let machine = Machine::new();
    let sandbox = machine.sandbox().await;
    let writes = "for d in / /usr /etc /dev /proc/sys/kernel \"$PWD\" \"$HOME\" \"$TMPDIR\" /tmp /var/tmp; do \
                  (echo x > $d/written-by-a-test) 2> /dev/null && echo $d; done";
    let [work, home, tmp] = [sandbox.work(), sandbox.home(), sandbox.tmp()].map(|path| path.display().to_string());
    let written = shell(&*sandbox, writes).await;
    assert_eq!(written.lines().collect::<Vec<_>>(), [&work, &home, &tmp, "/tmp", "/var/tmp"]);
    // `/tmp` is the sandbox's own directory, so it exists as long as the sandbox.
    assert!(sandbox.tmp().join("written-by-a-test").exists());
    let collected = sandbox.collect().await.unwrap();
    assert_eq!(
        collected.files_changed.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(),
        ["written-by-a-test"]
    );
}

#[tokio::test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
async fn a_program_from_the_home_or_a_package_runs_without_exposing_more() {
    let machine = Machine::new();
    machine.write("home/.local/share/tool/1.0", "#!/bin/sh\necho tool");
    fs::create_dir_all(machine.place("home/.local/bin")).unwrap();
    symlink("../share/tool/1.0", machine.place("home/.local/bin/tool")).unwrap();
    machine.write("home/project/node_modules/cli/lib.sh", "echo library");
    machine
        .write("home/project/node_modules/cli/cli.sh", "#!/bin/sh\n. \"$(dirname \"$(readlink -f \"$0\")\")/lib.sh\"");
    fs::create_dir_all(machine.place("home/project/node_modules/.bin")).unwrap();
    symlink("../cli/cli.sh", machine.place("home/project/node_modules/.bin/cli")).unwrap();
    machine.write("home/project/secret", "answer");
    let sandbox = machine.sandbox().await;
    assert_eq!(output(&*sandbox, "tool", &[]).await, "tool");
    let cli = machine.place("home/project/node_modules/.bin/cli");
    assert_eq!(output(&*sandbox, cli.to_str().unwrap(), &[]).await, "library");
    let listed = shell(&*sandbox, &format!("ls {}", machine.place("home/project").display())).await;
    assert!(!listed.contains("secret"), "{listed}");
}

#[tokio::test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
async fn an_exposed_path_can_be_read_but_not_written() {
    let machine = Machine::new();
    let script = machine.write("home/project/bot/main.sh", "cat \"$0\"; echo x >> \"$0\"");
    let sandbox = machine.sandbox().await;
    let path = script.to_str().unwrap();
    assert!(output(&*sandbox, "sh", &[path]).await.contains("No such file") || !script.exists());
    sandbox.show(&script);
    assert!(output(&*sandbox, "sh", &[path]).await.contains("Read-only file system"));
}

#[tokio::test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
async fn commands_on_a_copy_are_isolated_too() {
    let machine = Machine::new();
    let secret = machine.write("home/project/secret", "answer");
    let sandbox = machine.sandbox().await;
    fs::write(sandbox.work().join("made"), "by the agent").unwrap();
    let copy = sandbox.copy().await.unwrap();
    let script = format!("cat made; cat {}; echo x > made; pwd", secret.display());
    let command = copy.command("/bin/sh".as_ref(), &["-c".as_ref(), script.as_ref()]);
    let output = run(command, Duration::from_secs(60), 1 << 20).await.unwrap();
    assert_eq!(output.stdout.text(), format!("by the agent{}\n", sandbox.work().display()));
    assert!(output.stderr.text().contains("No such file"), "{}", output.stderr.text());
}

#[tokio::test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
async fn limits_apply_to_each_command() {
    let mut machine = Machine::new();
    machine.options.limits = Limits { open_files: 32, file_size: 1 << 20, cpu_seconds: 7, ..Limits::default() };
    let sandbox = machine.sandbox().await;
    assert_eq!(shell(&*sandbox, "ulimit -Hn; ulimit -t; ulimit -c").await, "32\n7\n0");
    let written =
        shell(&*sandbox, "trap '' XFSZ; dd if=/dev/zero of=big bs=65536 count=64 2> /dev/null; wc -c < big").await;
    assert_eq!(written, (1 << 20).to_string());
}

#[tokio::test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
async fn a_closed_network_has_only_its_own_loopback() {
    let mut machine = Machine::new();
    machine.options.network = NetworkPolicy::None;
    let sandbox = machine.sandbox().await;
    assert_eq!(shell(&*sandbox, "sed -n '3,$p' /proc/net/dev | wc -l").await, "1");
    assert_eq!(shell(&*sandbox, "grep -c 127.0.0.1 /proc/net/fib_trie > /dev/null && echo up").await, "up");
}

#[tokio::test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
async fn ports_of_a_closed_network_are_served_from_outside_until_the_program_ends() {
    let mut machine = Machine::new();
    machine.options.network = NetworkPolicy::ModelOnly;
    let sandbox = machine.sandbox().await;
    let listeners = sandbox.serve(&[3128, 5005]).unwrap().unwrap();
    assert_eq!(listeners.proxy(), 3129, "the port of the proxy is free");
    let serving = tokio::spawn(async move {
        let served = listeners.next().await.unwrap().take().await.unwrap();
        let ports: BTreeSet<u16> = served.listeners.iter().map(|(address, _)| address.port()).collect();
        let (_, listener) = served.listeners.iter().find(|(address, _)| address.port() == 5005).unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"from outside").await.unwrap();
        drop(stream);
        served.ended.wait().await;
        (ports, served.is_of_command, served.lookups.len())
    });
    let script =
        "cat < /dev/tcp/127.0.0.1/5005; echo; echo $HTTPS_PROXY $no_proxy; ls -d \"$PWD/../relay\" 2>&1 | grep -c No";
    let printed = output(&*sandbox, "bash", &["-c", script]).await;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!((lines[0], lines[2]), ("from outside", "1"), "{printed}");
    assert!(lines[1].starts_with("http://127.0.0.1:3129 localhost,"), "{printed}");
    assert_eq!(serving.await.unwrap(), ([3128, 3129, 5005].into(), false, 1));
}

#[tokio::test]
#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]
async fn the_system_cannot_be_changed_and_no_new_namespace_can_be_entered() {
    let machine = Machine::new();
    let sandbox = machine.sandbox().await;
    for script in ["unshare -U true", "unshare -m true", "mount -t tmpfs none /tmp", "mount -o remount,rw /usr"] {
        let output = shell(&*sandbox, &format!("{script} && echo done")).await;
        assert!(!output.contains("done"), "{script}: {output}");
    }
    assert_eq!(shell(&*sandbox, "cat /proc/1/environ /proc/1/mem 2> /dev/null | wc -c").await, "0");
}

#[test]
fn a_system_folder_cannot_be_private_or_contain_sandboxes() {
    let mut machine = Machine::new();
    let refused = |machine: &Machine| {
        let opened = SandboxFactory::open_isolated("isolated", &machine.host, &Registry::new(), &machine.options);
        opened.err().unwrap().to_string()
    };
    machine.host.temp = "/dev/shm".into();
    assert!(refused(&machine).ends_with("set `TMPDIR` to another folder"), "{}", refused(&machine));
    machine.options.private.push("/usr".into());
    assert!(refused(&machine).contains("/usr is a system folder"), "{}", refused(&machine));
}
