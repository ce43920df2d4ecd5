//! Fields of the configuration.

use super::{Block, Kind, block, field, modes, required};

/// The keys of a configuration.
pub static CONFIG: Block = block(
    "configuration",
    "All keys are optional. Paths are relative to the folder of the configuration.",
    &[
        field(
            "agent",
            Kind::TextOrMap(&AGENT),
            "Default agent: its name, or its definition, which then has its `type` as name. Default: the only \
             agent in `agents`, else `claude-code`.",
        ),
        field(
            "agents",
            Kind::Maps(&AGENT),
            "Definitions of agents, by the names that cases and the setting `agent` use.",
        ),
        field("tests", Kind::Text, "Folder with suites, searched with its subfolders. Default: `tests`, if it exists."),
        field("skills_dir", Kind::Text, "Folder with the skills. Default: `skills`."),
        field("state", Kind::Text, "Folder for recorded runs. Default: `.trialrun`."),
        field("store", Kind::Map(&STORE), "File for recorded runs, instead of that folder."),
        field("defaults", Kind::Map(&DEFAULTS), "Default settings of cases."),
        field("eval", Kind::Map(&EVAL), "Settings of runs."),
        field("judge", Kind::TextOrMap(&JUDGE), "Model that judges and plays users, as `provider:model` or as a map."),
        field("llm", Kind::Map(&LLM), "The same in another form; `judge` overrides it."),
        field("providers", Kind::Maps(&PROVIDER), "Limits of model providers, by their names."),
        field(
            "pricing",
            Kind::Text,
            "File with prices of models, which override the built-in ones and the costs that an agent reports. \
             It maps the name of a model to `prompt`, `completion`, `input_cache_read` and `input_cache_write` \
             in US dollars per token, or to `input`, `output`, `cache_read` and `cache_write` in US dollars per \
             million tokens.",
        ),
        field("sandbox", Kind::TextOrMap(&SANDBOX), "Sandbox of the agents: `local`, or a map."),
        field("report", Kind::Map(&REPORT), "Reports to write if the command line names none."),
        field("diff", Kind::Map(&DIFF), "Settings of `compare`."),
        field("fixtures", Kind::FixtureSection, "Settings of all fixtures files."),
    ],
)
.either_case();

static AGENT: Block = block(
    "agent",
    "An agent. Each type has further keys, which the page of the type describes.",
    &[required("type", Kind::Text, "Type of the agent, such as `http`, `subprocess`, `custom`.")],
)
.open();

static DEFAULTS: Block = block(
    "defaults",
    "Default settings of cases.",
    &[
        field("agent", Kind::Text, "Default agent. Alias of `agent` at the top level."),
        field("runtime", Kind::Text, "Alias of `agent`."),
        field("model", Kind::Text, "Model, or `scripted:FILE`."),
        field("permission_mode", Kind::OneOf(modes), "Permission mode of the agent."),
        field("timeout", Kind::Duration, "Time limit of one trial."),
        field("max_turns", Kind::Whole(1), "Maximum number of model turns of a trial."),
        field("trials", Kind::Whole(1), "Number of times that each case runs."),
        field("token_budget", Kind::Positive, "Maximum number of tokens of a trial."),
        field("jobs", Kind::Whole(1), "Number of trials to run in parallel."),
        field("parallelism", Kind::Whole(1), "Alias of `jobs`."),
        field(
            "retries",
            Kind::Whole(0),
            "Number of times that a broken attempt is repeated, which is one that failed for a reason other \
             than the agent.",
        ),
        field("reruns", Kind::Whole(0), "Number of times that a failed trial is run again. Alias of `eval.reruns`."),
        field("sandbox", Kind::Text, "Alias of `sandbox` at the top level."),
    ],
)
.either_case();

static EVAL: Block = block(
    "eval",
    "Settings of runs. In a `fabrik.config`, the defaults are `parallelism: 3`, `retries: 1` and \
             `defaultTimeout: 30000`.",
    &[
        field("parallelism", Kind::Whole(1), "Number of trials to run in parallel."),
        field(
            "reruns",
            Kind::Whole(0),
            "Number of times that a failed trial is run again. A trial that passes then is reported as *flaky*. \
             Default: 0.",
        ),
        field("retries", Kind::Whole(0), "Alias of `reruns`, as in a `fabrik.config`."),
        field("defaultTimeout", Kind::Duration, "Time limit of one trial."),
    ],
)
.either_case();

static JUDGE: Block = block(
    "judge",
    "The model that judges and plays users. Without `api_key`, its key comes from the environment.",
    &[
        field("model", Kind::Text, "Model, as `provider:model`."),
        field("judges", Kind::Whole(1), "Number of judges per assertion."),
        field("base_url", Kind::Text, "Base URL, instead of the vendor's own."),
        field("api_key", Kind::Text, "API key; write `${env.NAME}`."),
        field("temperature", Kind::Between(0.0, 2.0), "Sampling temperature."),
    ],
)
.either_case();

static LLM: Block = block(
    "llm",
    "The model that judges and plays users.",
    &[
        field("provider", Kind::Text, "Provider: `openai`, `anthropic`, `ollama`, or `custom` with a `baseUrl`."),
        required("model", Kind::Text, "Name of the model."),
        field("base_url", Kind::Text, "Base URL, instead of the vendor's own."),
        field("api_key", Kind::Text, "API key; write `${env.NAME}`."),
        field("temperature", Kind::Between(0.0, 2.0), "Sampling temperature."),
    ],
)
.either_case();

static PROVIDER: Block = block(
    "provider",
    "Limits of a model provider.",
    &[
        field("concurrency", Kind::Whole(1), "Maximum number of concurrent requests."),
        field("requests_per_minute", Kind::Whole(1), "Maximum number of requests per minute."),
        field("timeout", Kind::Duration, "Time limit of a request, including the whole answer."),
    ],
)
.either_case();

fn only_local() -> Vec<&'static str> {
    vec!["local"]
}

static SANDBOX: Block = block(
    "sandbox",
    "Sandbox of the agents. If a trial needs a kind of sandbox that this version does not support, it \
             is *broken*, unless there is a `fallback`.",
    &[
        field("provider", Kind::Text, "Kind of sandbox. Default: `local`."),
        field(
            "fallback",
            Kind::OneOf(only_local),
            "Kind to use instead, with a warning. Default in a `fabrik.config`: `local`.",
        ),
        field(
            "daytona",
            Kind::Map(&DAYTONA),
            "Settings of Daytona workspaces. They are read, but this kind is not supported yet.",
        ),
    ],
)
.either_case();

static DAYTONA: Block = block(
    "daytona",
    "Settings of Daytona workspaces.",
    &[
        field("apiKey", Kind::Text, "API key; write `${env.NAME}`."),
        field("apiUrl", Kind::Text, "URL of the API."),
        field("target", Kind::Text, "Region."),
        field("snapshot", Kind::Text, "Snapshot of a workspace."),
        field("image", Kind::Text, "Image of a workspace."),
        field("language", Kind::Text, "Language of a workspace."),
        field("env", Kind::TextMap, "Environment variables of a workspace."),
    ],
)
.either_case();

static REPORT: Block = block(
    "report",
    "Reports to write if the command line names none.",
    &[
        field("formats", Kind::Texts, "Formats, such as `terminal` and `json`."),
        field(
            "outputDir",
            Kind::Text,
            "Folder for report files, each called `report` with the extension of its format. Default: a single \
             report goes to standard output, several go to the folder for recorded runs.",
        ),
    ],
)
.either_case();

static DIFF: Block = block(
    "diff",
    "Settings of `compare`.",
    &[field(
        "regressionThreshold",
        Kind::Between(0.0, 1.0),
        "How far the mean score of a case can fall, as a share of the maximum score, before `compare` \
             reports a regression. Default: 0.05.",
    )],
)
.either_case();

static STORE: Block =
    block("store", "File for recorded runs.", &[field("path", Kind::Text, "Path of the file.")]).either_case();

/// Every block but the outermost one.
pub(super) static BLOCKS: [&Block; 11] =
    [&AGENT, &DEFAULTS, &EVAL, &JUDGE, &LLM, &PROVIDER, &SANDBOX, &DAYTONA, &REPORT, &DIFF, &STORE];

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

    use crate::Project;

    #[test]
    fn the_example_is_read() {
        let page = include_str!("../../../../docs/reference/configuration.md");
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("trialrun.config.ts"), super::super::tests::example(page)).unwrap();
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
