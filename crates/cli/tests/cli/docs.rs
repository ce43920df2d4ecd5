//! The README and the pages in `docs/`: links work, every code block is valid, commands parse, and in an empty
//! directory the commands of tutorials do what the page says.
//!
//! A comment before a block states the purpose of the block; it is not visible to readers:
//!
//! - `<!-- run -->`: the commands are run and must succeed; `<!-- run: exit 1 -->` must exit with 1;
//!   `<!-- run: needs bot.mjs -->` runs while `node bot.mjs` listens. Both can be combined:
//!   `<!-- run: needs bot.mjs, exit 1 -->`. A model on loopback proposes the tests of `gen`.
//!   The lines of a `text` block below must be printed, in order.
//! - `<!-- file: PATH -->`: the reader saves the block as `PATH`. A first line `# PATH` means the same.
//! - `<!-- shows: PATH -->`: the block is the content of `PATH`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::generation::proposed::{about_the_purpose, proposals};
use crate::shop::Shop;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Port of the bot in the pages. Tests use a free one.
const PORT: &str = "3107";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the paths of all user pages, relative to the root.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(str::to_owned).to_vec();
    let mut folders = vec![root().join("docs"), root().join("examples"), root().join("packs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "md") {
                pages.push(entry.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    pages.sort_unstable();
    pages
}

/// Contents of a page.
struct Page {
    blocks: Vec<Block>,
    links: Vec<String>,
    /// Anchors of its headings for links.
    anchors: BTreeSet<String>,
}

/// A fenced code block.
struct Block {
    language: String,
    code: String,
    /// Comment that precedes it.
    purpose: Option<String>,
}

impl Block {
    /// Returns the path under which the reader should save it.
    fn file(&self) -> Option<String> {
        if let Some(path) = self.purpose.as_deref().and_then(|purpose| purpose.strip_prefix("file: ")) {
            return Some(path.to_owned());
        }
        let comment = self.code.lines().next()?.trim_start_matches(['#', '/']).strip_prefix(' ')?;
        let path = comment.split([' ', ',']).next()?;
        let is_comment = self.code.starts_with('#') || self.code.starts_with("//");
        (is_comment && Path::new(path).extension().is_some()).then(|| path.to_owned())
    }

    /// Returns the commands in the block that start trialrun, without comments.
    fn commands(&self) -> Vec<Vec<String>> {
        let joined = self.code.replace("\\\n", " ");
        let words = |line: &str| shlex::split(line).unwrap_or_else(|| panic!("a shell cannot read {line:?}"));
        joined.lines().filter(|line| line.starts_with("trialrun ")).map(words).collect()
    }
}

impl Page {
    fn read(path: &str) -> Self {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let mut page = Self { blocks: Vec::new(), links: Vec::new(), anchors: BTreeSet::new() };
        let (mut purpose, mut block, mut heading): (Option<String>, Option<Block>, Option<String>) = (None, None, None);
        let options = pulldown_cmark::Options::ENABLE_TABLES;
        for event in Parser::new_ext(&text, options) {
            match event {
                Event::Html(html) => {
                    let comment = html.trim().strip_prefix("<!-- ").and_then(|html| html.strip_suffix(" -->"));
                    purpose = comment.filter(|text| !text.starts_with("index: ")).map(str::to_owned).or(purpose);
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    block = Some(Block { language: language.into(), code: String::new(), purpose: purpose.take() });
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Start(Tag::Link { dest_url, .. }) => page.links.push(dest_url.into()),
                Event::Start(Tag::Heading { level, .. }) if level != HeadingLevel::H1 => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.anchors.extend(heading.take().map(|text| anchor(&text))),
                Event::Start(Tag::Paragraph) => purpose = None,
                Event::Text(text) | Event::Code(text) => {
                    if let Some(block) = &mut block {
                        block.code.push_str(&text);
                    } else if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        page
    }
}

/// Returns the anchor that GitHub creates for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|char| char.is_alphanumeric() || matches!(char, '-' | '_')).collect()
}

#[test]
fn every_link_in_the_documentation_resolves() {
    let mut dead = Vec::new();
    for path in pages() {
        let page = Page::read(&path);
        for link in page.links.iter().filter(|link| !link.contains("://")) {
            let (file, fragment) =
                link.split_once('#').map_or((link.as_str(), None), |(file, name)| (file, Some(name)));
            let target =
                if file.is_empty() { root().join(&path) } else { root().join(&path).parent().unwrap().join(file) };
            let Ok(target) = target.canonicalize() else {
                dead.push(format!("{path}: {link}"));
                continue;
            };
            let is_page = target.extension().is_some_and(|extension| extension == "md");
            if let Some(fragment) = fragment.filter(|_| is_page) {
                let target = Page::read(target.strip_prefix(root()).unwrap().to_str().unwrap());
                if !target.anchors.contains(fragment) {
                    dead.push(format!("{path}: {link} (no such heading)"));
                }
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn every_yaml_and_json_block_can_be_parsed() {
    let scratch = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for path in pages() {
        for block in Page::read(&path).blocks {
            let problem = match block.language.as_str() {
                "yaml" => block.code.split("\n---\n").find_map(|document| {
                    let file = scratch.path().join("block.yaml");
                    std::fs::write(&file, document).unwrap();
                    suite::read_document(&file, "block.yaml").err().map(|problems| format!("{problems:?}"))
                }),
                "json" => {
                    let values = serde_json::Deserializer::from_str(&block.code).into_iter::<serde_json::Value>();
                    values.filter_map(Result::err).next().map(|error| error.to_string())
                }
                _ => None,
            };
            wrong.extend(problem.map(|problem| format!("{path}: {problem}\n{}", block.code)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_configuration_in_the_documentation_is_valid() {
    let mut wrong = Vec::new();
    for path in pages() {
        let blocks = Page::read(&path).blocks.into_iter();
        for block in blocks.filter(|block| block.file().as_deref() == Some("trialrun.yaml")) {
            let project = tempfile::tempdir().unwrap();
            std::fs::write(project.path().join("trialrun.yaml"), &block.code).unwrap();
            let ran = Command::new(PROGRAM).arg("config").current_dir(project.path()).output().unwrap();
            let problems = String::from_utf8_lossy(&ran.stderr);
            wrong.extend((!ran.status.success()).then(|| format!("{path}: {problems}\n{}", block.code)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn images_in_the_documentation_have_the_tested_versions_of_agents() {
    let tested = std::fs::read_to_string(root().join("scripts/agents")).unwrap();
    let mut packages = 0;
    for path in pages() {
        for block in Page::read(&path).blocks.iter().filter(|block| block.language == "dockerfile") {
            let pinned = block.code.split_whitespace().filter_map(|word| word.rsplit_once('@'));
            for (package, version) in pinned {
                assert!(tested.contains(&format!(" {package} {version} ")), "{path}: {package}@{version}");
                packages += 1;
            }
        }
    }
    assert!(packages >= 3, "{packages}");
}

#[test]
fn every_documented_command_is_valid() {
    let project = Project::new(PROGRAM);
    let mut wrong = Vec::new();
    for path in pages() {
        for words in Page::read(&path).blocks.iter().filter(|block| block.language == "sh").flat_map(Block::commands) {
            let until = words.iter().position(|word| matches!(word.as_str(), "|" | ">" | "&&" | "&" | "#"));
            let typed: Vec<&str> = words[1..until.unwrap_or(words.len())].iter().map(String::as_str).collect();
            let ran = project.run(&[&typed[..], &["--help"]].concat());
            if ran.code != 0 {
                wrong.push(format!("{path}: {words:?}\n{}", ran.err));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The bot from a page; it ends on drop.
struct Bot(Child);

impl Drop for Bot {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bot {
    /// Starts `node FILE` and waits until it listens.
    fn start(project: &Project, file: &str, port: u16) -> Self {
        let child = Command::new("node").arg(file).current_dir(project.dir()).stdout(Stdio::null()).spawn();
        let bot = Self(child.unwrap());
        assert!(testkit::until(|| TcpStream::connect(("127.0.0.1", port)).is_ok()), "{file} does not listen");
        bot
    }
}

/// Follows a page block by block in an empty directory. Returns the number of blocks that were run.
fn follow(path: &str) -> usize {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(PROGRAM, bin.path().join("trialrun")).unwrap();
    let writer = Shop::open();
    writer.proposes(proposals(&about_the_purpose()), Duration::ZERO);
    let project = Project::new("sh")
        .path_first(bin.path())
        .env("OPENAI_API_KEY", "sk-writer")
        .env("OPENAI_BASE_URL", &writer.url("/writer"));
    let (mut bot, mut printed, mut ran) = (None, None, 0);
    for block in Page::read(path).blocks {
        let code = block.code.replace(PORT, &port.to_string());
        let purpose = block.purpose.clone().unwrap_or_default();
        if let Some(file) = purpose.strip_prefix("shows: ") {
            assert_eq!(project.read(file), code, "{path} shows another {file}");
        } else if let Some(file) = block.file() {
            project.write(&file, &code);
        } else if block.language == "sh" {
            printed = None;
            if !purpose.starts_with("run") {
                continue;
            }
            let mut code_wanted = 0;
            for condition in purpose.trim_start_matches("run").trim_start_matches(": ").split(", ") {
                if let Some(file) = condition.strip_prefix("needs ") {
                    bot.get_or_insert_with(|| Bot::start(&project, file, port));
                } else if let Some(code) = condition.strip_prefix("exit ") {
                    code_wanted = code.parse().unwrap();
                }
            }
            let done = project.run(&["-e", "-c", &code]);
            assert_eq!(done.code, code_wanted, "{path}: {code}\n{}", done.output());
            printed = Some(format!("{}{}", done.out, done.err));
            ran += 1;
        } else if let (Some(printed), "text") = (&printed, block.language.as_str()) {
            let mut lines = printed.lines();
            for expected in code.lines().map(str::trim).filter(|line| !line.is_empty()) {
                assert!(
                    lines.any(|line| line.contains(expected)),
                    "{path} shows {expected:?}, and this was printed:\n{printed}"
                );
            }
        }
    }
    ran
}

#[test]
fn the_tutorial_for_a_first_skill_test_can_be_followed() {
    assert_eq!(follow("docs/tutorials/first-skill-test.md"), 7);
}

#[test]
fn the_tutorial_for_a_first_skill_evaluation_can_be_followed() {
    assert_eq!(follow("docs/tutorials/first-skill-evaluation.md"), 2);
}

#[test]
fn the_tutorial_for_many_cases_in_one_file_can_be_followed() {
    assert_eq!(follow("docs/tutorials/many-cases.md"), 1);
}

#[test]
fn the_guide_for_cases_from_a_table_can_be_followed() {
    assert_eq!(follow("docs/how-to/cases-from-a-table.md"), 1);
}

#[test]
fn the_guide_for_auditing_a_suite_can_be_followed() {
    assert_eq!(follow("docs/how-to/audit-a-suite.md"), 2);
}

#[test]
fn the_guide_for_discovery_can_be_followed() {
    assert_eq!(follow("docs/how-to/discover.md"), 2);
}

#[test]
fn the_guide_for_mocks_can_be_followed() {
    assert_eq!(follow("docs/how-to/mock-servers.md"), 1);
}

#[test]
fn the_guide_for_coding_agents_can_be_followed() {
    assert_eq!(follow("docs/how-to/coding-agents.md"), 1);
}

#[test]
#[cfg_attr(not(has = "node"), ignore = "needs Node.js and npm; run scripts/test")]
fn the_tutorial_for_generated_tests_can_be_followed() {
    assert_eq!(follow("docs/tutorials/generated-tests.md"), 4);
}

#[test]
#[cfg_attr(not(has = "node"), ignore = "needs Node.js and npm; run scripts/test")]
fn the_tutorial_for_a_first_bot_test_can_be_followed() {
    assert_eq!(follow("docs/tutorials/first-bot-test.md"), 2);
}

#[test]
fn the_output_in_the_readme_is_what_the_quickstart_prints() {
    let project = Project::new(PROGRAM);
    let state = project.dir().join("state");
    let mut command = project.command(&["run", "examples/quickstart", "--state", state.to_str().unwrap()]);
    let ran = testkit::Ran::from(command.current_dir(root()).output().unwrap()).exits(1);
    let readme = Page::read("README.md");
    let shown = readme.blocks.iter().find(|block| block.language == "text").unwrap();
    let mut lines = ran.out.lines().map(str::trim);
    for line in shown.code.lines().map(str::trim) {
        assert!(lines.any(|printed| printed == line), "the README shows {line:?}, and this was printed:\n{}", ran.out);
    }
}

#[test]
fn the_commands_for_the_readers_own_skill_work_in_the_quickstart() {
    let project = Project::new(PROGRAM);
    let state = project.dir().join("state");
    let readme = Page::read("README.md");
    let block = readme.blocks.iter().find(|block| block.code.contains("cd examples/quickstart")).unwrap();
    let codes = block.commands().into_iter().map(|words| {
        let arguments: Vec<&str> =
            words[1..].iter().map(String::as_str).chain(["--state", state.to_str().unwrap()]).collect();
        let mut command = project.command(&arguments);
        let ran = testkit::Ran::from(command.current_dir(root().join("examples/quickstart")).output().unwrap());
        assert!(ran.code < 2, "{}", ran.output());
        ran.code
    });
    // The run contains a scenario that fails on purpose.
    assert_eq!(codes.collect::<Vec<_>>(), [0, 0, 1]);
}

#[test]
fn the_readmes_scenario_passes_beside_those_of_the_quickstart() {
    let project = Project::new(PROGRAM);
    for file in ["trialrun.yaml", "skills/changelog/SKILL.md", "skills/changelog/tests/models/careful.yaml"] {
        let text = fs::read_to_string(root().join("examples/quickstart").join(file)).unwrap();
        project.write(file, &text);
    }
    let scenario = |block: &Block| block.file().filter(|file| file.starts_with("skills/changelog/tests/"));
    let readme = Page::read("README.md");
    let (file, block) = readme.blocks.iter().find_map(|block| Some((scenario(block)?, block))).unwrap();
    assert!(!root().join("examples/quickstart").join(&file).exists(), "{file} would replace a file of the quickstart");
    project.write(&file, &block.code);
    project.run(&["run", "changelog"]).exits(0);
}

/// Returns a project with the tests in the README, and an agent at `url`.
fn readme_project(url: &str) -> Project {
    let project = Project::new(PROGRAM).env("OPENAI_API_KEY", "sk-judge");
    for block in Page::read("README.md").blocks {
        if let Some(file) = block.file().filter(|file| file.starts_with("tests/")) {
            project.write(&file, &block.code);
        }
    }
    project.write("trialrun.yaml", &format!("agents: {{ shop: {{ type: http, url: '{url}' }} }}\nagent: shop\n"));
    project
}

#[test]
fn the_bot_tests_in_the_readme_pass_against_a_matching_bot() {
    let (shop, judge) = (Shop::open(), Shop::open());
    let project = readme_project(&shop.url("/api/chat"));
    project.run(&["check"]).exits(0);
    let judge = judge.url("/judge");
    let report = project.report(&["--judge", "openai-chat:judge", "--judge-base-url", &judge], 0);
    let trials = report["trials"].as_array().unwrap().iter();
    let cases: BTreeSet<&str> = trials.map(|trial| trial["case"].as_str().unwrap()).collect();
    assert_eq!(cases, BTreeSet::from(["asks for the return policy", "remembers the order"]));
}

#[test]
fn the_readmes_scenario_and_evaluation_are_valid() {
    let project = Project::new(PROGRAM);
    let readme = Page::read("README.md");
    for block in &readme.blocks {
        match (block.file(), block.language.as_str()) {
            (Some(file), "yaml") if !file.starts_with("tests/") => drop(project.write(&file, &block.code)),
            (None, "json") => drop(project.write("skills/release-notes/evals/evals.json", &block.code)),
            _ => {}
        }
    }
    project.write("skills/release-notes/evals/files/commits.txt", "a1b2c3 Drop --legacy\n");
    for skill in ["release-notes", "changelog"] {
        let text = format!("---\nname: {skill}\ndescription: Does it. Use it when asked.\n---\nBody\n");
        project.write(&format!("skills/{skill}/SKILL.md"), &text);
    }
    project.write("trialrun.yaml", "skills_dir: ./skills\ndefaults: { agent: chat, model: \"scripted:m.yaml\" }\n");
    for script in ["m.yaml", "skills/changelog/tests/models/careful.yaml"] {
        project.write(script, "steps: [{ text: Done. }]\n");
    }
    let ran = project.run(&["check", "."]).exits(0);
    assert!(ran.out.contains("2 cases"), "{}", ran.output());
}
