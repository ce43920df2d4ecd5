//! Suites of other tools, made by hand after their public forms: the files in `crates/suite/tests/foreign/FORMAT`, each
//! with the files beside it that it names.

use std::fs;
use std::path::{Path, PathBuf};

/// Writes a file of a corpus with its name and content, and what it names; returns the target to run.
type Write = fn(Folder<'_>, &str, &str) -> String;

/// The formats, with what writes a file of their corpus.
static FORMATS: &[(&str, Write)] = &[
    ("deepeval", dataset),
    ("evals", evaluation),
    ("harbor", harbor_task),
    ("inspect", dataset),
    ("plugin-eval", plugin_case),
    ("promptfoo", promptfoo_configuration),
    ("trigger-eval", trigger_list),
    ("vally", vally_suite),
    ("waza", waza_suite),
];

/// Returns the names of the formats.
pub fn formats() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|(name, _)| *name)
}

/// Returns the folder of all corpora.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../suite/tests/foreign")
}

/// Returns the files of a corpus with their contents, sorted by name.
///
/// # Panics
/// Panics if there is no such corpus.
pub fn corpus(format: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder().join(format)).expect("a format with a corpus");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read_to_string(path).expect("a text"))).collect()
}

/// Writes a suite of a format below `to`, with the files that suites of its corpus name, and returns the target to run,
/// relative to `to`. The suite is called `name` where its format allows it.
///
/// # Panics
/// Panics if the format has no corpus, or a file cannot be written.
pub fn write(format: &str, to: &Path, name: &str, content: &str) -> String {
    let (_, write) = FORMATS.iter().find(|(known, _)| *known == format).expect("a format with a corpus");
    write(Folder(to), name, content)
}

/// Compares `text`, whose parts are separated by empty lines, with a file in the folder of all corpora. If
/// `TRIALRUN_UPDATE_EXPECTED` is set, the file is written first.
///
/// # Panics
/// Panics if they differ, with the first part that does, or if the file cannot be written.
#[track_caller]
pub fn compare(file: &str, text: &str) {
    let path = folder().join(file);
    if std::env::var_os("TRIALRUN_UPDATE_EXPECTED").is_some() {
        fs::write(&path, text).expect("a file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    for (is, was) in text.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(is, was, "TRIALRUN_UPDATE_EXPECTED=1 rewrites {}", path.display());
    }
    assert_eq!(text.len(), expected.len());
}

/// A folder in which files are written.
#[derive(Clone, Copy)]
struct Folder<'a>(&'a Path);

impl Folder<'_> {
    /// Writes a file and its parent directories.
    fn write(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap_or(self.0)).expect("a folder");
        fs::write(path, content).expect("a file");
        self
    }
}

/// Writes a skill with its evaluations, and returns the skill.
fn evaluation(folder: Folder<'_>, _: &str, content: &str) -> String {
    skill(folder).write("skills/s/evals/evals.json", content);
    "skills/s".to_owned()
}

/// Writes a skill with its trigger evaluation, and returns the list.
fn trigger_list(folder: Folder<'_>, _: &str, content: &str) -> String {
    skill(folder).write("skills/s/evals/trigger-eval.json", content);
    "skills/s/evals/trigger-eval.json".to_owned()
}

fn skill(folder: Folder<'_>) -> Folder<'_> {
    folder
        .write("skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\n# Body\n")
        .write("skills/s/evals/files/a.csv", "a\n")
        .write("skills/s/evals/cases/b.txt", "b\n")
        .write("skills/s/templates/plan.md", "# Plan\n")
}

/// Writes a case of a plug-in, and returns its file.
fn plugin_case(folder: Folder<'_>, name: &str, content: &str) -> String {
    let (stem, extension) = name.rsplit_once('.').expect("a name with an ending");
    let case = format!("plug/evals/{stem}");
    folder
        .write("plug/.claude-plugin/plugin.json", "{\"name\": \"picnics\", \"version\": \"1.2.0\"}")
        .write("plug/skills/plan/SKILL.md", "---\nname: plan\ndescription: Plans.\n---\nPlan.\n")
        .write(&format!("{case}/fixture.sh"), "touch a.txt\n")
        .write(&format!("{case}/resources/r.txt"), "r\n")
        .write(&format!("{case}/history.jsonl"), "{}\n")
        .write(
            &format!("{case}/reference.jsonl"),
            "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"At the lake.\"}]}}\n",
        );
    if extension == "md" {
        folder
            .write(&format!("{case}/prompt.md"), content)
            .write(&format!("{case}/graders/place.md"), "---\ntype: regex\nweight: 2\n---\nlake\n")
            .write(&format!("{case}/graders/tone.md"), "Is friendly.\n");
        return format!("{case}/prompt.md");
    }
    folder.write(&format!("{case}/case.yaml"), content);
    format!("{case}/case.yaml")
}

/// Writes a suite of Vally, and returns its file.
fn vally_suite(folder: Folder<'_>, _: &str, content: &str) -> String {
    for skill in ["skills/plan", "skills/other", "plug/skills/one", "plug/skills/two"] {
        let name = skill.rsplit('/').next().unwrap_or(skill);
        folder.write(&format!("{skill}/SKILL.md"), format!("---\nname: {name}\ndescription: d\n---\nDo.\n"));
    }
    folder
        .write("plug/.claude-plugin/plugin.json", "{\"name\": \"plug\"}")
        .write("data/menu.txt", "bread\n")
        .write("graders/check.py", "print('{\"passed\": true}')\n")
        .write("broken.yaml", "stimuli: [\n")
        .write("evals/lake/eval.yaml", LAKE)
        .write("evals/shore/eval.yaml", "stimuli: [{name: shore, prompt: Go., graders: [{type: completed}]}]\n")
        .write(
            ".vally.yaml",
            "environments:\n  kitchen: {commands: [touch kitchen]}\n  garden: {files: [{src: data/menu.txt, dest: a.txt}]}\n",
        )
        .write("eval.yaml", content);
    "eval.yaml".to_owned()
}

/// Writes a task of harbor, and returns its folder. `content` has a line `# ==> PATH <==` before each file, and `# ==> no PATH <==` for a
/// file that every task has otherwise.
fn harbor_task(folder: Folder<'_>, name: &str, content: &str) -> String {
    let task = format!("tasks/{}", name.trim_end_matches(".txt"));
    let mut files = vec![
        ("instruction.md", "Write the sum to `sum.txt`.\n".to_owned()),
        ("environment/Dockerfile", "FROM ubuntu:24.04\nWORKDIR /app\n".to_owned()),
        ("tests/test.sh", "test -f /app/sum.txt && echo 1 > /logs/verifier/reward.txt\n".to_owned()),
    ];
    for line in content.split_inclusive('\n') {
        match line.strip_prefix("# ==> ").and_then(|rest| rest.strip_suffix(" <==\n")) {
            Some(head) => {
                let path = head.strip_prefix("no ").unwrap_or(head);
                files.retain(|(known, _)| *known != path);
                if path == head {
                    files.push((path, String::new()));
                }
            }
            None => files.last_mut().expect("at least one file").1.push_str(line),
        }
    }
    for (path, text) in files {
        folder.write(&format!("{task}/{path}"), text);
    }
    task
}

/// Writes a suite of waza with its tasks, and returns its file.
fn waza_suite(folder: Folder<'_>, _: &str, content: &str) -> String {
    folder
        .write("skills/plan/SKILL.md", "---\nname: plan\ndescription: d\n---\nPlan.\n")
        .write("evals/rows.csv", "id,prompt,place\none,Plan at the {{.Vars.place}}.,lake\n,Plan again.,shore\n")
        .write("evals/bare.csv", "id,question\none,Where?\n")
        .write("evals/fixtures/rules.md", "Be brief.\n")
        .write("evals/fixtures/menu.txt", "bread\n")
        .write("evals/fixtures/app/a.txt", "a\n")
        .write("evals/snapshots/menu.txt", "bread\n")
        .write("evals/schema.json", "{\"type\": \"object\"}")
        .write("evals/rubric.md", "Names a day.\n")
        .write(
            "evals/style.md",
            "---\nname: style\nversion: 1.0.0\nscale: 1-5\ndescription: Plain words\n\
             goldens: [{name: plain, output: Go., expected: pass}]\n---\n\nThe words are plain.\n",
        )
        .write("evals/graders/check.py", "import sys\nsys.exit(0)\n")
        .write("evals/eval.yaml", content);
    for (name, task) in WAZA_TASKS {
        folder.write(&format!("evals/tasks/{name}.yaml"), task);
    }
    "evals/eval.yaml".to_owned()
}

/// Writes a suite, which is followed by its datasets: each begins with `--- NAME`.
fn dataset(folder: Folder<'_>, _: &str, content: &str) -> String {
    let mut parts = content.split("--- ");
    folder
        .write("note.txt", "note\n")
        .write("folder/c.txt", "c\n")
        .write("setup.sh", "touch ready\n")
        .write("model.yaml", "steps: [{text: At the lake.}]\n")
        .write("suite.yaml", parts.next().unwrap_or_default());
    for part in parts {
        let (name, data) = part.split_once('\n').expect("a name in a line of its own");
        folder.write(name, data);
    }
    "suite.yaml".to_owned()
}

/// Writes a configuration of promptfoo and the files that those of the corpus name, and returns it.
fn promptfoo_configuration(folder: Folder<'_>, name: &str, content: &str) -> String {
    let file = format!("promptfooconfig.{}", Path::new(name).extension().unwrap_or_default().display());
    folder
        .write("prompts/two.txt", "One {{word}}.\n---\nTwo {{word}}.\n")
        .write("prompts/a.md", "# {{word}}\n")
        .write("prompts/lines.jsonl", "{\"q\": \"{{word}}\"}\n[\"{{word}}\"]\n")
        .write(
            "prompts/chat.json",
            "[{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", \"content\": \"{{word}}?\"}]",
        )
        .write("prompts/make.js", "export default () => 'a';\n")
        .write(
            "tests.csv",
            "word,__expected,__expected2,__description,__threshold,__metric,__config:__expected2:threshold,__suffix\n\
             hi,contains: hi,levenshtein(3): Say hi.,first,0.5,m,2,!\n\
             bye,Say bye.,,,,,,\n",
        )
        .write(
            "thresholds.csv",
            "word,__expected,__threshold,__config:__expected:threshold\n\
             hi,llm-rubric(0.8): Is kind.,high,\n\
             bye,contains(3): Say,,\n\
             yes,not-g-eval(0.2): Is rude.,,0.4\n\
             no,starts-with: Say,,\n",
        )
        .write("mistakes.csv", "word,_expected,__other,__config:__expected:weight\nhi,hi,x,2\n")
        .write(
            "tests.jsonl",
            "{\"vars\": {\"word\": \"hi\"}, \"assert\": [{\"type\": \"contains\", \"value\": \"hi\"}]}\n{\"vars\": {\"word\": \"bye\"}}\n",
        )
        .write("more/a.yaml", "- vars: {word: hi}\n  assert: [{type: contains, value: hi}]\n")
        .write("more/b.yaml", "vars: {word: bye}\nassert: [{type: contains, value: bye}]\n")
        .write("tests.js", "export default [{ vars: { word: 'hi' }, assert: [{ type: 'contains', value: 'hi' }] }];\n")
        .write("data.txt", "text\n")
        .write("data.yaml", "a: [1]\n")
        .write("texts/a.txt", "a\n")
        .write("texts/b.txt", "b\n")
        .write("word.js", "export default () => ({ output: 'a' });\n")
        .write("schema.json", "{\"type\": \"object\"}\n")
        .write("check.js", "export const longer = (output) => output.length > 2;\n")
        .write("check.py", "def get_assert(output, context):\n    return len(output) > 2\n")
        .write("parse.js", "export default (json) => json.reply;\n")
        .write("provider.js", "export default class { async callApi(prompt) { return { output: prompt }; } }\n")
        .write("provider.py", "def answer(prompt, options, context):\n    return {'output': prompt}\n")
        .write("providers.yaml", "- echo\n- {id: echo, label: second}\n")
        .write("defaults.yaml", "assert: [{type: contains, value: hi}]\n")
        .write("asserts.yaml", "- {type: contains, value: a}\n- {type: nonsense, value: a}\n")
        .write(&file, content);
    file
}

/// Suite that experiments name.
const LAKE: &str = "environment: {skills: [../../skills/plan], mcpServers: {shop: {command: node}}}\n\
    defaults: {runs: 2}\n\
    stimuli: [{name: lake, prompt: Go., environment: {skills: [../../skills/plan]}, graders: [{type: completed}]}]\n";

/// Tasks of the suites in the corpus.
pub const WAZA_TASKS: [(&str, &str); 8] = [
    ("lake", "id: lake\nname: Lake\ninputs: {prompt: Plan a picnic at the lake.}\n"),
    ("bare", "id: bare\nname: Bare\ninputs: {prompt: Plan.}\n"),
    (
        "all",
        "id: all\nname: All\ndescription: d\nenabled: false\ngolden: true\ncontext_dir: fixtures\ntimeout_seconds: 30\n\
         first_event_timeout_seconds: 3\ntags: [smoke]\nskill_directories: [x]\ninstruction_files: [rules.md]\n\
         inputs:\n  prompt_file: ../rubric.md\n  context: {fixture: app, level: easy}\n\
         \x20 files: [{path: menu.txt}, {path: b.txt, content: b}]\n  environment: {MODE: fast}\n  follow_up_prompts: [And then?]\n\
         expected:\n  outcomes: [{type: done, value: 1, condition: x}]\n  tool_calls: {required: []}\n\
         \x20 behavior: {max_tool_calls: 5, max_iterations: 3, max_tokens: 900, required_tools: [bash], forbidden_tools: [rm], max_response_time_ms: 9000}\n\
         \x20 output_contains: [lake]\n  output_not_contains: [rain]\n  should_trigger: true\n\
         graders: [{name: short, type: code, weight: 0.5, assertions: ['len(output) < 900']}]\n",
    ),
    (
        "mistakes",
        "id: mistakes\nname: M\nseed: 3\ninputs: {prompts: Plan., repos: [{type: worktree, source: ., dest: r}], workdir: sub, files: [{path: ../x, content: y}, {path: none.txt}]}\n\
         expected: {output_contain: [x], should_trigger: maybe}\n",
    ),
    (
        "both",
        "id: both\nname: B\ninputs: {prompt: Plan., prompt_file: a.md, follow_up_prompts: [x], responder: {instructions: i, max_followups: 1}}\n",
    ),
    ("text", "just text\n"),
    (
        "responder",
        "id: talk\nname: T\ninputs: {prompt: Plan., responder: {model: m, instructions: You want a lake., max_followups: 3}}\n",
    ),
    ("broken", "id: broken\ninputs: [\n"),
];
