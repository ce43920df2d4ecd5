//! What the README shows is run as it stands there: its tests and its configuration, against the bot of the example where
//! there is Node.js, and against a bot like it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod shop;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use shop::Shop;
use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// The first address in the README's configuration.
const ADDRESS: &str = "http://127.0.0.1:3107/api/chat";

fn root() -> String {
    format!("{}/../..", env!("CARGO_MANIFEST_DIR"))
}

/// The block of code in the README whose first line, a comment, begins with this.
fn snippet(head: &str) -> String {
    let text = std::fs::read_to_string(format!("{}/README.md", root())).unwrap();
    let mut blocks = text.split("\n```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap().1);
    let is_head = |line: &str| line.trim_start_matches(['/', '#', ' ']).starts_with(head);
    let found = blocks.find(|block| block.lines().next().is_some_and(is_head));
    format!("{}\n", found.unwrap_or_else(|| panic!("the README shows no `{head}`")))
}

/// A project with what the README shows, whose agent is at `url`.
fn project(url: &str) -> Project {
    let project = Project::new(PROGRAM).env("SHOP_KEY", "shop-canary-77aa").env("OPENAI_API_KEY", "sk-judge");
    let config = snippet("trialrun.config.ts");
    assert!(config.contains(ADDRESS), "{config}");
    project.write("trialrun.config.ts", &config.replace(ADDRESS, url));
    for file in ["tests/order.test.ts", "tests/returns.yaml", "tests/played.yaml"] {
        project.write(file, &snippet(file));
    }
    project
}

/// Runs what the README shows against the bot at `url`.
fn holds(url: &str) {
    let (project, judge) = (project(url), Shop::open());
    project.run(&["check"]).exits(0);
    let judge = judge.url("/judge");
    let judge = ["--judge", "openai-chat:judge", "--judge-base-url", &judge];
    let report = project.report(&[&["tests/order.test.ts", "tests/returns.yaml"], &judge[..]].concat(), 0);
    let told = |trial: &serde_json::Value| {
        // What somebody wrote has a place.
        let written = trial["findings"].as_array().unwrap().iter().filter(|finding| finding["source"].is_object());
        (trial["case"].as_str().unwrap().to_owned(), written.count())
    };
    let mut trials: Vec<(String, usize)> = report["trials"].as_array().unwrap().iter().map(told).collect();
    trials.sort_unstable();
    assert_eq!(trials, [("asks for the return policy".to_owned(), 5), ("remembers the order".to_owned(), 4)]);
}

/// The bot of the example; it ends when this is dropped.
struct Bot(Child);

impl Drop for Bot {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_the_readme_shows_holds_of_the_bot_of_the_example() {
    let mut bot = Command::new("node");
    bot.arg(format!("{}/examples/basic-http/bot.mjs", root())).env("PORT", "0");
    let Ok(child) = bot.stdout(Stdio::piped()).spawn() else {
        eprintln!("there is no Node.js: not tested");
        return;
    };
    let mut bot = Bot(child);
    let mut line = String::new();
    BufReader::new(bot.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    holds(line.trim().strip_prefix("listening on ").unwrap());
}

#[test]
fn what_the_readme_shows_holds_of_a_bot_like_it() {
    let shop = Shop::open();
    holds(&shop.url("/api/chat"));
}
