//! What may be written in a configuration.

use std::fmt::Write as _;

use super::{Block, Kind, field, fixtures, modes, required};
use crate::format::SECTION_FIELDS;

/// The keys of a configuration.
pub static CONFIG: Block = Block {
    name: "configuration",
    about: "Every key may be left out. Paths start at the file's directory.",
    open: false,
    either_case: true,
    fields: &[
        field(
            "agent",
            Kind::TextOrMap(&AGENT),
            "The agent of cases that name none: its name, or the agent itself, which is then called like its `type`. Not written: the one under `agents` if there is only one, else `claude-code`.",
        ),
        field("agents", Kind::Maps(&AGENT), "Agents by the names that cases and `--agent` have for them."),
        field(
            "tests",
            Kind::Text,
            "A folder with suites, searched with all that is below it. Not written: `tests`, if there is such a folder.",
        ),
        field("skills_dir", Kind::Text, "The folder that holds the skills. Not written: `skills`."),
        field("state", Kind::Text, "The folder for recorded runs. Not written: `.trialrun`."),
        field("store", Kind::Map(&STORE), "Where runs are recorded, if not in that folder."),
        field("defaults", Kind::Map(&DEFAULTS), "Settings for cases that do not have their own."),
        field("eval", Kind::Map(&EVAL), "How tests are run."),
        field(
            "judge",
            Kind::TextOrMap(&JUDGE),
            "The model that judges and plays users, as `provider:model` or with more about it.",
        ),
        field("llm", Kind::Map(&LLM), "The same in other words; what `judge` says goes before it."),
        field("providers", Kind::Maps(&PROVIDER), "How the providers of models may be asked, by their names."),
        field(
            "pricing",
            Kind::Text,
            "A file with prices of models, which go before those that are built in and before what an agent says: a map \
             from a model's name to `prompt`, `completion`, `input_cache_read` and `input_cache_write` in US dollars for \
             a token, or `input`, `output`, `cache_read` and `cache_write` for a million.",
        ),
        field("sandbox", Kind::TextOrMap(&SANDBOX), "Where agents work: `local`, or with more about it."),
        field("report", Kind::Map(&REPORT), "Which reports are written when the command line names none."),
        field("diff", Kind::Map(&DIFF), "When a run is worse than another."),
        field("fixtures", Kind::FixtureSection, "What holds for all fixtures files."),
    ],
};

static AGENT: Block = Block {
    name: "agent",
    about: "An agent. Each type has keys of its own, which are described with it.",
    open: true,
    either_case: false,
    fields: &[required("type", Kind::Text, "What kind of agent it is, such as `http`, `subprocess`, `custom`.")],
};

static DEFAULTS: Block = Block {
    name: "defaults",
    about: "Settings for cases that do not have their own.",
    open: false,
    either_case: true,
    fields: &[
        field("agent", Kind::Text, "The agent. Another place for `agent`."),
        field("runtime", Kind::Text, "Another name for `agent`."),
        field("model", Kind::Text, "The model, or `scripted:FILE`."),
        field("permission_mode", Kind::OneOf(modes), "How the agent treats permissions."),
        field("timeout", Kind::Duration, "Wall clock for one trial."),
        field("max_turns", Kind::Whole(1), "The most model turns of a trial."),
        field("trials", Kind::Whole(1), "How often each case is repeated."),
        field("token_budget", Kind::Positive, "The most tokens of a trial."),
        field("jobs", Kind::Whole(1), "How many trials run at a time."),
        field("parallelism", Kind::Whole(1), "Another name for `jobs`."),
        field(
            "retries",
            Kind::Whole(0),
            "How often a broken attempt is repeated: one that something else than its agent broke.",
        ),
        field("reruns", Kind::Whole(0), "How often a failed trial is run again. Another place for `eval.reruns`."),
        field("sandbox", Kind::Text, "Another place for `sandbox`."),
    ],
};

static EVAL: Block = Block {
    name: "eval",
    about: "How tests are run. In a `fabrik.config` these have the values 3, 1 and 30000 where they are not written.",
    open: false,
    either_case: true,
    fields: &[
        field("parallelism", Kind::Whole(1), "How many trials run at a time."),
        field(
            "reruns",
            Kind::Whole(0),
            "How often a failed trial is run again. One that passes then is *flaky*, in every report. Not written: never.",
        ),
        field("retries", Kind::Whole(0), "Another name for `reruns`, as in a `fabrik.config`."),
        field("defaultTimeout", Kind::Duration, "Wall clock for one trial."),
    ],
};

static JUDGE: Block = Block {
    name: "judge",
    about: "The model that judges and plays users. Its key comes from the environment if it is not written here.",
    open: false,
    either_case: true,
    fields: &[
        field("model", Kind::Text, "As `provider:model`."),
        field("judges", Kind::Whole(1), "How many judge the same."),
        field("base_url", Kind::Text, "Another address than its vendor's own."),
        field("api_key", Kind::Text, "Its key; write `${env.NAME}`."),
        field("temperature", Kind::Between(0.0, 2.0), "How freely it answers."),
    ],
};

static LLM: Block = Block {
    name: "llm",
    about: "The model that judges and plays users.",
    open: false,
    either_case: true,
    fields: &[
        field("provider", Kind::Text, "Who has it: `openai`, `anthropic`, `ollama`, or `custom` with a `baseUrl`."),
        required("model", Kind::Text, "Its name there."),
        field("base_url", Kind::Text, "Another address than its vendor's own."),
        field("api_key", Kind::Text, "Its key; write `${env.NAME}`."),
        field("temperature", Kind::Between(0.0, 2.0), "How freely it answers."),
    ],
};

static PROVIDER: Block = Block {
    name: "provider",
    about: "How a provider of models may be asked.",
    open: false,
    either_case: true,
    fields: &[
        field("concurrency", Kind::Whole(1), "How many requests may be on their way at a time."),
        field("requests_per_minute", Kind::Whole(1), "How many requests may be sent in a minute."),
        field("timeout", Kind::Duration, "How long a whole answer may take."),
    ],
};

fn only_local() -> Vec<&'static str> {
    vec!["local"]
}

static SANDBOX: Block = Block {
    name: "sandbox",
    about: "Where agents work. A trial that needs a sandbox of a kind that this version cannot make is *broken*, unless another kind may take its place.",
    open: false,
    either_case: true,
    fields: &[
        field("provider", Kind::Text, "The kind. Not written: `local`."),
        field(
            "fallback",
            Kind::OneOf(only_local),
            "What may take its place, with a warning. In a `fabrik.config` it is `local` if it is not written.",
        ),
        field("daytona", Kind::Map(&DAYTONA), "How that kind is reached. It is read, but cannot be made yet."),
    ],
};

static DAYTONA: Block = Block {
    name: "daytona",
    about: "How workspaces elsewhere are reached.",
    open: false,
    either_case: true,
    fields: &[
        field("apiKey", Kind::Text, "The key; write `${env.NAME}`."),
        field("apiUrl", Kind::Text, "The address of its API."),
        field("target", Kind::Text, "The region."),
        field("snapshot", Kind::Text, "What a workspace is made from."),
        field("image", Kind::Text, "The image that a workspace is made from."),
        field("language", Kind::Text, "The language that a workspace is for."),
        field("env", Kind::TextMap, "Variables of a workspace."),
    ],
};

static REPORT: Block = Block {
    name: "report",
    about: "Which reports are written when the command line names none.",
    open: false,
    either_case: true,
    fields: &[
        field("formats", Kind::Texts, "Such as `terminal` and `json`."),
        field(
            "outputDir",
            Kind::Text,
            "The folder for those that are files, each called `report` with its format's ending. Not written: a single one goes to standard output, several into the folder for recorded runs.",
        ),
    ],
};

static DIFF: Block = Block {
    name: "diff",
    about: "When a run is worse than another.",
    open: false,
    either_case: true,
    fields: &[field(
        "regressionThreshold",
        Kind::Between(0.0, 1.0),
        "By how much a case's mean score may fall, as a share of what it can be, before `compare` calls it a regression. Not written: 0.05.",
    )],
};

static STORE: Block = Block {
    name: "store",
    about: "Where runs are recorded.",
    open: false,
    either_case: true,
    fields: &[field("path", Kind::Text, "The file.")],
};

/// Every map of a configuration that has a section of its own on the page.
static BLOCKS: [(&str, &Block); 13] = [
    ("The keys", &CONFIG),
    ("`agent`, and each of `agents`", &AGENT),
    ("`defaults`", &DEFAULTS),
    ("`eval`", &EVAL),
    ("`judge`", &JUDGE),
    ("`llm`", &LLM),
    ("Each of `providers`", &PROVIDER),
    ("`sandbox`", &SANDBOX),
    ("`daytona` of `sandbox`", &DAYTONA),
    ("`report`", &REPORT),
    ("`diff`", &DIFF),
    ("`store`", &STORE),
    ("`fixtures`", &FIXTURES),
];

/// Its keys stand in a table of their own.
static FIXTURES: Block = Block {
    name: "fixtures section",
    about: "What holds for all [fixtures files](fixtures.md). `${env.NAME}` is not filled in here: scripts get it as it is written.",
    open: false,
    either_case: false,
    fields: &[],
};

const OPENING: &str = "\
# The configuration

A project is configured by one file in its root directory, which is found from the current directory upward:

- `trialrun.config.ts`, `.js`, `.mjs` or `.json`, `trialrun.yaml` or `trialrun.yml`;
- where there is none of them, `fabrik.config.ts`, `.js`, `.mjs` or `.json` as it is, or `.ai-tester.yaml`, of which only \
  `skills_dir`, `defaults.model` and `defaults.permission_mode` are known.

Keys of several words may be written in snake case and in camel case. A key that nobody knows is an error. `trialrun \
config` shows what holds and where each value comes from, `trialrun schema config` prints a schema for editors.

A module exports its configuration as default. It is evaluated by the program itself: no Node.js is needed, local files \
and packages can be imported, and `defineConfig` comes from `trialrun/config` (also `@fabrik/cli`, `@fabriklabs/cli`). \
Functions among an agent's keys stay functions.

```ts
";

const EXAMPLE: &str = "\
import { defineConfig } from \"trialrun/config\";

export default defineConfig({
  agents: {
    shop: {
      type: \"http\",
      url: \"http://localhost:3000/api/chat\",
      headers: { Authorization: \"Bearer ${env.SHOP_KEY}\" },
    },
  },
  defaults: { agent: \"shop\", timeout: \"30s\", jobs: 8 },
  judge: \"anthropic:claude-sonnet-4-5\",
});
";

const LAYERS: &str = "\
## The environment

`${env.NAME}` in a value is replaced by that variable, `$${env.NAME}` stands for itself. A variable that is missing is an \
error with the key and its place, but only if the value is used: that of an agent if a case is run with it, that of the \
judge if something is judged. `process.env` is empty in a configuration. Values of keys and of headers that sign in are \
masked in records and reports.

## Layers

What is built in gives way to the configuration, that to what a suite says, that to variables of the environment, and \
those to the command line.
";

/// The page about the configuration, in Markdown, without the variables that go before it.
pub fn config_reference() -> String {
    let mut page = format!("{OPENING}{EXAMPLE}```\n\n{LAYERS}");
    for (title, block) in BLOCKS {
        match block.fields {
            [] => {
                // Writing to a string cannot fail.
                let table = fixtures::table(SECTION_FIELDS);
                let _ = write!(page, "\n## {title}\n\n{}\n\n{table}", block.about);
            }
            _ => block.write(title, &mut page),
        }
    }
    page
}

/// A key that is in no block, where the block would be.
#[cfg(test)]
pub const EXAMPLES_OF_WRONG_KEYS: [(&Block, &str); 11] = [
    (&CONFIG, "'0000': x"),
    (&DEFAULTS, "defaults: {'0000': x}"),
    (&EVAL, "eval: {'0000': x}"),
    (&JUDGE, "judge: {'0000': x}"),
    (&LLM, "llm: {'0000': x}"),
    (&PROVIDER, "providers: {openai: {'0000': x}}"),
    (&SANDBOX, "sandbox: {'0000': x}"),
    (&DAYTONA, "sandbox: {daytona: {'0000': x}}"),
    (&REPORT, "report: {'0000': x}"),
    (&DIFF, "diff: {'0000': x}"),
    (&STORE, "store: {'0000': x}"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Project;

    #[test]
    fn the_page_names_every_key_and_its_example_is_read() {
        let page = config_reference();
        for (_, block) in BLOCKS {
            for field in block.fields {
                assert!(page.contains(&format!("| `{}` |", field.key)), "{}", field.key);
            }
        }
        for field in SECTION_FIELDS {
            assert!(page.contains(&format!("| `{}` |", field.key)), "{}", field.key);
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("trialrun.config.ts"), EXAMPLE).unwrap();
        let (project, problems) = Project::find(directory.path(), directory.path());
        assert_eq!(problems, []);
        assert_eq!(project.agents[0].missing.len(), 1);
        assert_eq!(project.defaults.agent.unwrap().value, "shop");
    }

    #[test]
    fn both_spellings_of_a_key_are_in_the_schema() {
        let schema = crate::config_schema();
        let judge = &schema["definitions"]["judge"]["properties"];
        assert!(judge["base_url"].is_object() && judge["baseUrl"].is_object() && judge["base_u_r_l"].is_null());
        let eval = &schema["definitions"]["eval"]["properties"];
        assert!(eval["defaultTimeout"].is_object() && eval["default_timeout"].is_object());
    }
}
