//! Tests for all kinds of containers, in addition to the contract.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::TcpListener;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::container::{IMAGE, ask, left, project, system};
use super::kind::Kind;

/// Defines a test for each rule of containers.
macro_rules! container_tests {
    ($kind:path) => {
        $crate::sandbox::container_contract::container_tests! { $kind, [] }
    };
    ($kind:path, $attributes:tt) => {
        $crate::sandbox::kind::tests_of! { container_contract, $kind, $attributes:
            what_a_killed_run_leaves_behind_is_removed
            programs_fail_files_are_read_only_and_canaries_are_planted
            a_missing_image_is_named_with_the_command_that_gets_it
            an_agent_reaches_only_the_hosts_that_the_policy_allows_and_all_attempts_are_recorded
        }
    };
}
pub(super) use container_tests;

pub(super) fn what_a_killed_run_leaves_behind_is_removed(kind: &Kind) {
    let project = project(kind, "subprocess:sh agent.sh", "fixtures: {env: {A: b}}\n");
    let pipe = project.process_pipe("pipe");
    project.write("agent.sh", &format!("exec 3> {}; echo began >&3; sleep 1000", pipe.path().display()));
    let config = project.read("trialrun.yaml").replace("visible: [", &format!("visible: [{:?}, ", pipe.path()));
    project.write("trialrun.yaml", &config);
    let live = project.start(&["run"]);
    pipe.wait_for_line("began");
    let of_run = format!("trialrun-{}-", live.id());
    let running = left(kind.name).into_iter().find(|name| name.starts_with(&of_run)).unwrap();
    let format = "{{index .Config.Labels \"trialrun.owner\"}}";
    let owner = ask(kind.name, &["container", "inspect", "--format", format, &running]).unwrap().stdout;
    let owner = String::from_utf8(owner).unwrap();
    let scope = owner.trim().rsplit(':').next().unwrap();
    live.signal(Signal::SIGKILL);
    // Only the harness was killed: its supervisor must end the container.
    pipe.wait_until_closed();

    // Simulates a killed supervisor: this container belongs to a process that has ended.
    let name = format!("trialrun-test-{}", std::process::id());
    let label = format!("trialrun.owner=1:1:{scope}");
    let args = ["run", "--detach", "--name", &name, "--label", &label, "--network", "none", "--ulimit", "nofile=64:64"];
    let mut args = args.to_vec();
    args.extend(["--ulimit", "nproc=1000:1000"]);
    let mounts: Vec<String> = system().iter().map(|path| format!("{0}:{0}:ro", path.display())).collect();
    mounts.iter().for_each(|mount| args.extend(["--volume", mount]));
    args.extend([IMAGE, "sleep", "1000"]);
    let made = ask(kind.name, &args).unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let listed = project.run(&["prune", "--min-age", "0"]).exits(0);
    assert!(listed.out.contains(&name), "{}", listed.output());
    let removed = project.run(&["prune", "--min-age", "0", "--yes"]).exits(0);
    assert!(!left(kind.name).contains(&name), "{}", removed.output());
}

pub(super) fn programs_fail_files_are_read_only_and_canaries_are_planted(kind: &Kind) {
    let project = project(kind, "chat", "");
    let commands = [
        "env X=1 sh -c 'echo $X'",
        "env X=1 sh -c 'echo $X'",
        "echo new > docs/a.txt; chmod 777 docs; rm -r docs",
        "cat .env; echo $DEPLOY_TOKEN | wc -c; echo new > b.txt",
    ];
    let call = |command: &str| json!({"tools": [{"name": "Bash", "input": {"command": command}}]});
    let steps: Vec<Value> = commands.into_iter().map(call).chain([json!({"text": "Done."})]).collect();
    project.write("scenarios/model.json", &json!({ "steps": steps }).to_string());
    let scenario = "scenario: s\nsystem_prompt: p\nuser_prompt: go\nagent: chat\nmodel: scripted:model.json\n\
                    fixtures: {files_unstaged: [{path: docs/a.txt, content: old}]}\ncanaries: true\nfaults:\n  \
                    - tool_fails: {command: env, exit_code: 3, stderr: no network}\n  - read_only: [docs]\n\
                    assertions:\n  - {id: a, type: command_succeeds, run: 'echo x >> docs/a.txt && env && ! cat .env'}\n";
    project.write("scenarios/s.yaml", scenario);
    let report = project.report(&[], 0);
    let trial = &report["trials"][0];
    let result = |at: usize| trial["tool_calls"][at]["result"].as_str().unwrap();
    assert!(result(0).contains("no network") && result(1).starts_with('1'), "{trial:#}");
    assert!(result(2).contains("Read-only file system"), "{trial:#}");
    assert!(result(3).contains("STRIPE_SECRET_KEY=[masked") && result(3).contains("\n41"), "{trial:#}");
    assert_eq!(trial["files_changed"], json!([{"path": "b.txt", "change": "added"}]));
    let signs = trial["integrity"].to_string();
    assert!(signs.contains("canary"), "{signs}");
}

pub(super) fn a_missing_image_is_named_with_the_command_that_gets_it(kind: &Kind) {
    let (project, engine) = (project(kind, "subprocess:cat", ""), kind.name);
    project.write("trialrun.yaml", &format!("sandbox: {{provider: {engine}, image: localhost/trialrun-none:1}}\n"));
    let ran = project.run(&["run"]).exits(3);
    assert!(ran.err.contains(&format!("{engine} pull localhost/trialrun-none:1")), "{}", ran.output());
    project.write("trialrun.yaml", &format!("sandbox: {engine}\n"));
    let ran = project.run(&["run"]).exits(3);
    assert!(ran.err.contains(&format!("sandbox: {{provider: {engine}, image: IMAGE}}")), "{}", ran.output());
}

/// Sends a request for a tunnel to the proxy, and shows the beginning of the answer.
fn tunnel_to(host: &str) -> String {
    format!(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; printf \"CONNECT {host}:443 HTTP/1.1\\r\\n\\r\\n\" >&3; \
         head -c 12 <&3'"
    )
}

pub(super) fn an_agent_reaches_only_the_hosts_that_the_policy_allows_and_all_attempts_are_recorded(kind: &Kind) {
    let servers = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [allowed, other] = [0, 1].map(|at| servers[at].local_addr().unwrap().port());
    let command = tunnel_to("of-command.example");
    let policy = format!(
        "sandbox: {{network: {{allow: ['127.0.0.1:{allowed}']}}}}\nassertions:\n  \
         - {{id: told, type: output_contains, pattern: 'served, HTTP/1.1 403, none'}}\n  \
         - {{id: only, type: egress_only, hosts: [127.0.0.1, exfil.example, lookup.example]}}\n  \
         - {{id: command, type: command_succeeds, run: {}}}\n",
        json!(format!("{command} | grep 403"))
    );
    let project = project(kind, "subprocess:sh agent.sh", "");
    project.write(
        "scenarios/s.yaml",
        &format!("scenario: s\nsystem_prompt: p\nuser_prompt: Hi\nagent: 'subprocess:sh agent.sh'\n{policy}"),
    );
    let refused = tunnel_to("exfil.example");
    project.write(
        "agent.sh",
        &format!(
            "read -r line\nserved=$(bash -c 'cat < /dev/tcp/127.0.0.1/{allowed}')\nrefused=$({refused})\n\
             open=$(bash -c ': < /dev/tcp/127.0.0.1/{other}' 2> /dev/null && echo reached || echo none)\n\
             getent hosts lookup.example\necho \"{{\\\"text\\\": \\\"$served, $refused, $open\\\"}}\"\n"
        ),
    );
    let [serving, _other] = servers;
    let served = std::thread::spawn(move || serving.accept().unwrap().0.write_all(b"served").unwrap());
    let live = project.start(&["run", "--retries", "0", "--report", "json=r.json"]);
    let of_run = format!("trialrun-{}-", live.id());
    let ran = live.end();
    let report: Value = serde_json::from_str(&project.read("r.json")).unwrap();
    let trial = &report["trials"][0];
    assert_eq!(trial["outcome"], "passed", "{trial:#}\n{}", ran.output());
    served.join().unwrap();
    let attempts: Vec<(&str, &str, bool)> = trial["egress"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| {
            let text = |field: &str| attempt[field].as_str().unwrap();
            (text("host"), text("verdict"), attempt["by_command"] == true)
        })
        .collect();
    for expected in [
        ("127.0.0.1", "allowed", false),
        ("exfil.example", "refused", false),
        ("lookup.example", "refused", false),
        ("of-command.example", "refused", true),
    ] {
        assert!(attempts.contains(&expected), "{expected:?}: {attempts:?}");
    }
    let left = left(kind.name).into_iter().filter(|name| name.starts_with(&of_run));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
    assert_eq!(project.left_over(), Vec::<String>::new());
}
