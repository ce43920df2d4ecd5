//! The table of settings.

use std::str::FromStr;

use model::InvalidText;
use report::telemetry::TRACEPARENT;
use serde_json::{Value, json};
use suite::Project;

use super::applies::Applies;
use super::{Resolution, calibration, configured};
use crate::layer::Layer;
use crate::overrides::{
    Overrides, Timeout, parse_duration, parse_jobs, parse_judges, parse_positive, parse_precision, parse_share,
};
use crate::path::shown;
use crate::state::STATE;

/// A setting of a run.
pub struct Setting {
    /// Its name in `config` and in records.
    pub name: &'static str,
    /// Its option on the command line.
    pub flag: Option<&'static str>,
    /// Variables that set it, in order of precedence.
    pub variables: &'static [&'static str],
    /// Its key in the configuration, with the section.
    pub key: Option<&'static str>,
    /// Description of its default value.
    pub default: &'static str,
    /// Relation to a value that a case sets.
    pub applies: Applies,
    /// A line of help.
    pub help: &'static str,
    /// Returns `true` if it is set on the command line.
    pub(super) is_typed: fn(&Overrides) -> bool,
    /// Sets it to the value of a variable.
    pub(super) put: Option<Put>,
    /// Returns the layer that sets it, among those below the command line and variables.
    pub(super) below: fn(&Resolution<'_>) -> Option<Layer>,
    /// Returns the value that the run uses; `null` if the case or the agent decides.
    pub(super) value: fn(&Resolution<'_>) -> Value,
}

type Put = fn(&mut Overrides, &str) -> Result<(), String>;

impl Setting {
    const fn new(name: &'static str, help: &'static str, value: fn(&Resolution<'_>) -> Value) -> Self {
        Self {
            name,
            flag: None,
            variables: &[],
            key: None,
            default: "",
            applies: Applies::ToRun,
            help,
            is_typed: |_| false,
            put: None,
            below: |_| None,
            value,
        }
    }

    const fn flag(mut self, flag: &'static str, is_typed: fn(&Overrides) -> bool) -> Self {
        (self.flag, self.is_typed) = (Some(flag), is_typed);
        self
    }

    const fn variables(mut self, variables: &'static [&'static str], put: Put) -> Self {
        (self.variables, self.put) = (variables, Some(put));
        self
    }

    const fn key(mut self, key: &'static str, below: fn(&Resolution<'_>) -> Option<Layer>) -> Self {
        (self.key, self.below) = (Some(key), below);
        self
    }

    const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    const fn applies(mut self, applies: Applies) -> Self {
        self.applies = applies;
        self
    }

    /// Returns `true` if `arg` is the option for this setting.
    pub fn is_of(&self, arg: &clap::Arg) -> bool {
        arg.get_long().is_some() && self.flag.and_then(|flag| flag.strip_prefix("--")) == arg.get_long()
    }

    /// Returns the help for its option, including the default.
    pub fn help_with_default(&self) -> String {
        match self.default {
            "" => self.help.to_owned(),
            default => format!("{} [default: {default}]", self.help),
        }
    }
}

/// All settings, in the order in which `config` shows them.
pub static SETTINGS: [Setting; 64] = [
    Setting::new("agent", "Agent to run the cases with; repeat it to compare agents", |used| {
        let agents = &used.run.arms.agents;
        if agents.is_empty() { json!(used.run.default_agent()) } else { json!(agents) }
    })
    .flag("--agent", |args| !args.arms.agent.is_empty())
    .variables(&["TRIALRUN_AGENT"], |args, text| {
        args.arms.agent = split_list(text);
        Ok(())
    })
    .key("defaults.agent", |used| project(&used.project().defaults.agent))
    .default("claude-code")
    .applies(Applies::OverCase),
    Setting::new("model", "Model, for all agents or for one (`AGENT=MODEL`)", |used| {
        match used.args.arms.model.as_slice() {
            [] => json!(configured::default_model(used.run)),
            models => json!(models),
        }
    })
    .flag("--model", |args| !args.arms.model.is_empty())
    .variables(&["TRIALRUN_MODEL"], |args, text| {
        args.arms.model = split_list(text);
        Ok(())
    })
    .key("defaults.model", |used| {
        configured::default_model(used.run)?;
        project(&used.project().defaults.model)
    })
    .applies(Applies::OverCase),
    Setting::new("permission_mode", "Permission mode of the agent", |used| {
        json!(used.run.defaults.permission_mode.unwrap_or(model::PermissionMode::BypassPermissions).name())
    })
    .key("defaults.permission_mode", |used| project(&used.project().defaults.permission_mode))
    .default("bypassPermissions")
    .applies(Applies::UnderCase),
    Setting::new("reasoning_effort", "Reasoning effort passed to the agent", |used| {
        json!(used.run.arms.reasoning_effort)
    })
    .flag("--reasoning-effort", |args| args.arms.reasoning_effort.is_some())
    .variables(&["TRIALRUN_REASONING_EFFORT"], |args, text| put(&mut args.arms.reasoning_effort, Ok(text.to_owned())))
    .applies(Applies::OverCase),
    Setting::new("base_url", "Base URL of the API for the agent's model", |used| json!(used.run.arms.base_url))
        .flag("--base-url", |args| args.arms.base_url.is_some())
        .variables(&["TRIALRUN_BASE_URL"], |args, text| put(&mut args.arms.base_url, Ok(text.to_owned()))),
    Setting::new(
        "gateway",
        "How agent CLIs reach the vendor of their model: directly (`off`), or through the gateway, which counts (`observe`)",
        |used| json!(used.run.gateway.name()),
    )
    .flag("--gateway", |args| args.arms.gateway.is_some())
    .variables(&["TRIALRUN_GATEWAY"], |args, text| parse(&mut args.arms.gateway, text))
    .key("defaults.gateway", |used| project(&used.project().defaults.gateway))
    .default("off"),
    Setting::new(
        "cassette",
        "Recorded model answers: `record` them, `replay` them without a model, or both (`auto`)",
        |used| json!(used.run.cassettes.mode.name()),
    )
    .flag("--cassette", |args| args.cassettes.cassette.is_some())
    .variables(&["TRIALRUN_CASSETTE"], |args, text| parse(&mut args.cassettes.cassette, text))
    .key("defaults.cassette", |used| project(&used.project().defaults.cassette))
    .default("off"),
    Setting::new("cassette_dir", "Folder of all cassettes", |used| json!(used.run.cassettes.directory))
        .flag("--cassette-dir", |args| args.cassettes.cassette_dir.is_some())
        .key("defaults.cassette_dir", |used| project(&used.project().defaults.cassette_dir))
        .default("`cassettes` beside each suite"),
    Setting::new("cassette_delays", "Replay answers as slowly as they were recorded", |used| {
        json!(used.run.cassettes.honours_delays)
    })
    .flag("--cassette-delays", |args| args.cassettes.cassette_delays),
    Setting::new(
        "trials",
        "Number of times to run each case; `auto` or `auto:MAX` runs it until the answer is known",
        |used| json!(used.run.trials(None)),
    )
    .flag("--trials", |args| args.arms.trials.is_some())
        .variables(&["TRIALRUN_TRIALS"], |args, text| parse(&mut args.arms.trials, text))
        .key("defaults.trials", |used| project(&used.project().defaults.trials))
        .default("1")
        .applies(Applies::OverCase),
    Setting::new("pass_rate", "Pass rate that cases require with `--trials auto`", |used| {
        json!(used.run.defaults.pass_rate.unwrap_or(model::PassRate::DEFAULT))
    })
    .key("defaults.pass_rate", |used| project(&used.project().defaults.pass_rate))
    .default("0.9")
    .applies(Applies::UnderCase),
    Setting::new(
        "precision",
        "With `--trials auto`, run until pass rates and differences are known this precisely: 0.05 is ± 5 points",
        |used| json!(used.run.precision()),
    )
    .flag("--precision", |args| args.arms.precision.is_some())
    .variables(&["TRIALRUN_PRECISION"], |args, text| put(&mut args.arms.precision, parse_precision(text)))
    .key("defaults.precision", |used| project(&used.project().defaults.precision)),
    Setting::new("baseline", "Also run each case without its skill, and compare", |used| json!(used.run.arms.baseline))
        .flag("--baseline", |args| args.arms.baseline || args.arms.no_baseline)
        .default("for evals.json")
        .applies(Applies::OverCase),
    Setting::new(
        "arms",
        "What each arm has of the skill or plug-in that a case tests: `none`, `skill` or `plugin`, with commas in between",
        |used| json!(used.run.arms.having),
    )
    .flag("--arms", |args| !args.arms.arms.is_empty()),
    Setting::new("seed", "Seed for the order in which arms are interleaved", |used| json!(used.run.arms.seed))
        .flag("--seed", |args| args.arms.seed.is_some())
        .default("0"),
    Setting::new("source_repo", "Repository to clone sandboxes from, before the fixtures", |used| {
        json!(used.args.sandboxes.source_repo)
    })
    .flag("--source-repo", |args| args.sandboxes.source_repo.is_some()),
    Setting::new("remote", "Remote that agents push to, with `--source-repo`: `isolated` or `real`", |used| {
        json!(used.run.sandbox.remote.unwrap_or_default().to_string())
    })
    .flag("--remote", |args| args.sandboxes.remote.is_some())
    .variables(&["TRIALRUN_REMOTE"], |args, text| parse(&mut args.sandboxes.remote, text))
    .key("sandbox.remote", |used| project(&used.project().isolation.remote))
    .default("isolated")
    .applies(Applies::OverCase),
    Setting::new(
        "lend_git_sign_in",
        "Let the agent push to the source repository with your sign-in; needs `--remote real`",
        |used| json!(used.args.sandboxes.lend_git_sign_in),
    )
    .flag("--lend-git-sign-in", |args| args.sandboxes.lend_git_sign_in),
    Setting::new("max_turns", "Maximum model turns of a trial; a trial that exceeds it fails", |used| {
        json!(used.run.limits.max_turns.or(used.run.defaults.max_turns))
    })
    .flag("--max-turns", |args| args.budgets.max_turns.is_some())
    .variables(&["TRIALRUN_MAX_TURNS"], |args, text| put(&mut args.budgets.max_turns, whole_number(text, 1)))
    .key("defaults.max_turns", |used| project(&used.project().defaults.max_turns))
    .applies(Applies::OverCase),
    Setting::new(
        "warn_turns_of_scenarios",
        "Number of model turns above which a scenario without `max_turns` produces a warning",
        |_| json!(suite::WARN_TURNS),
    ),
    Setting::new("token_budget", "Maximum total tokens of a trial; a trial that exceeds it fails", |used| {
        json!(used.run.limits.max_total_tokens.or(used.run.defaults.token_budget))
    })
    .flag("--max-total-tokens", |args| args.budgets.max_total_tokens.is_some())
    .variables(&["TRIALRUN_MAX_TOTAL_TOKENS"], |args, text| {
        put(&mut args.budgets.max_total_tokens, parse_positive(text))
    })
    .key("defaults.token_budget", |used| project(&used.project().defaults.token_budget))
    .applies(Applies::OverCase),
    Setting::new("max_input_tokens", "Maximum input tokens of a trial, including cache reads and writes", |used| {
        json!(used.run.limits.budgets.input)
    })
    .flag("--max-input-tokens", |args| args.budgets.max_input_tokens.is_some()),
    Setting::new("max_non_cached_input_tokens", "Maximum uncached input tokens of a trial", |used| {
        json!(used.run.limits.budgets.non_cached_input)
    })
    .flag("--max-non-cached-input-tokens", |args| args.budgets.max_non_cached_input_tokens.is_some()),
    Setting::new("max_output_tokens", "Maximum output tokens of a trial, including reasoning", |used| {
        json!(used.run.limits.budgets.output)
    })
    .flag("--max-output-tokens", |args| args.budgets.max_output_tokens.is_some()),
    Setting::new("max_reasoning_tokens", "Maximum reasoning tokens of a trial", |used| {
        json!(used.run.limits.budgets.reasoning)
    })
    .flag("--max-reasoning-tokens", |args| args.budgets.max_reasoning_tokens.is_some()),
    Setting::new("max_cost_usd", "Maximum cost of a trial in US dollars", |used| {
        json!(used.run.limits.budgets.cost_usd)
    })
    .flag("--max-cost", |args| args.budgets.max_cost.is_some()),
    Setting::new(
        "max_run_cost_usd",
        "Maximum cost of all trials in US dollars; once it is exceeded, no trial is started",
        |used| json!(used.run.limits.max_run_cost),
    )
    .flag("--max-run-cost", |args| args.budgets.max_run_cost.is_some()),
    Setting::new(
        "max_run_tokens",
        "Maximum number of tokens of all trials; once it is exceeded, no trial is started",
        |used| json!(used.run.limits.max_run_tokens),
    )
    .flag("--max-run-tokens", |args| args.budgets.max_run_tokens.is_some()),
    Setting::new(
        "max_duration_ms",
        "Maximum working time of a trial's agent; with `--on-budget warn`, exceeding it only produces a warning",
        |used| json!(used.args.budgets.max_duration),
    )
    .flag("--max-duration", |args| args.budgets.max_duration.is_some()),
    Setting::new("on_budget", "Action when a trial exceeds a budget: `warn`, `fail`, or `stop` the run", |used| {
        json!(used.run.limits.on_budget.name())
    })
    .flag("--on-budget", |args| args.budgets.on_budget.is_some())
    .default("fail"),
    Setting::new("require", "Conditions for each trial, in addition to its assertions", |used| {
        json!(used.run.requires_integrity.then_some(["integrity"]))
    })
    .flag("--require", |args| !args.gates.require.is_empty())
    .key("require", |used| project(&used.project().require)),
    Setting::new("threshold", "Share of its score with which a trial passes, in cases whose score decides", |used| {
        json!(used.run.threshold)
    })
    .flag("--threshold", |args| args.gates.threshold.is_some()),
    Setting::new(
        "pricing",
        "File with model prices, which override the built-in list and the costs that an agent reports",
        |used| json!(configured::pricing(used.args, used.session).map(|file| shown(&file, &used.session.cwd))),
    )
    .flag("--pricing", |args| args.budgets.pricing.is_some())
    .key("pricing", |used| project(&used.project().pricing)),
    Setting::new("timeout_ms", "Time limit for a trial, such as `90s` or `10m`; a bare number is in seconds", |used| {
        json!(used.run.timeout(None, false).0)
    })
    .flag("--timeout", |args| args.schedule.timeout.is_some())
    .variables(TIMEOUT, put_timeout)
    .key("defaults.timeout", |used| project(&used.project().defaults.timeout_ms))
    .default("10m, 30s for tests as code")
    .applies(Applies::OverCase),
    Setting::new("timeout_ms_of_code", "Time limit of tests as code", |used| json!(used.run.timeout(None, true).0))
        .flag("--timeout", |args| args.schedule.timeout.is_some())
        .variables(TIMEOUT, put_timeout)
        .key("defaults.timeout", |used| project(&used.project().defaults.timeout_ms))
        .default("30s")
        .applies(Applies::OverCase),
    Setting::new("jobs", "Number of trials to run in parallel", |used| json!(used.run.jobs))
        .flag("--jobs", |args| args.schedule.jobs.is_some())
        .variables(&["TRIALRUN_JOBS"], |args, text| put(&mut args.schedule.jobs, parse_jobs(text)))
        .key("defaults.jobs", |used| project(&used.project().defaults.jobs))
        .default("the number of cores"),
    Setting::new(
        "retries",
        "Number of retries of a broken attempt; attempts with a scripted model are not retried",
        |used| json!(used.run.retry.retries),
    )
    .flag("--retries", |args| args.schedule.retries.is_some())
    .variables(&["TRIALRUN_RETRIES", "ASE_AGENT_RETRIES"], |args, text| put(&mut args.schedule.retries, count(text)))
    .key("defaults.retries", |used| project(&used.project().defaults.retries))
    .default("1"),
    Setting::new(
        "reruns",
        "Number of times to rerun a failed trial; a trial that then passes is reported as flaky",
        |used| json!(used.run.retry.reruns),
    )
    .flag("--reruns", |args| args.schedule.reruns.is_some())
    .variables(&["TRIALRUN_RERUNS"], |args, text| put(&mut args.schedule.reruns, count(text)))
    .key("eval.reruns", |used| project(&used.project().defaults.reruns))
    .default("0")
    .applies(Applies::UnderCase),
    Setting::new(
        "retry_on",
        "Also retry attempts that changed nothing and exited with an error (`exit`), timed out (`timeout`), or either \
         (`exit,timeout`); `none` turns this off",
        |used| json!(used.run.retry.retry_on.map(runner::RetryOn::name)),
    )
    .flag("--retry-on", |args| args.schedule.retry_on.is_some())
    .default("both for evals.json"),
    Setting::new("idle_warn_ms", "Warn after this time without agent output", |used| json!(used.run.idle_warn_ms))
        .flag("--idle-warn", |args| args.output.idle_warn.is_some())
        .variables(&["TRIALRUN_IDLE_WARN"], |args, text| put(&mut args.output.idle_warn, parse_duration(text)))
        .default("30s"),
    Setting::new("stop_grace_ms", "Grace period before an agent is killed", |used| json!(used.run.stop_grace_ms))
        .flag("--stop-grace", |args| args.schedule.stop_grace.is_some())
        .variables(&["TRIALRUN_STOP_GRACE"], |args, text| put(&mut args.schedule.stop_grace, parse_duration(text)))
        .default("3s"),
    Setting::new(
        "setup_timeout_ms",
        "Time limit of a setup command, and of inspecting the sandbox after a trial",
        |used| json!(used.run.sandbox.setup_timeout_ms),
    )
    .flag("--setup-timeout", |args| args.schedule.setup_timeout.is_some())
    .variables(&["TRIALRUN_SETUP_TIMEOUT"], |args, text| put(&mut args.schedule.setup_timeout, parse_duration(text)))
    .default("2m"),
    Setting::new("sandbox", "Kind of sandbox", |used| json!(used.run.sandbox.kind))
        .flag("--sandbox", |args| args.sandboxes.sandbox.is_some())
        .variables(&["TRIALRUN_SANDBOX"], |args, text| put(&mut args.sandboxes.sandbox, Ok(text.to_owned())))
        .key("sandbox", |used| project(&used.project().defaults.sandbox))
        .default("local"),
    Setting::new(
        "network",
        "Hosts that processes in sandboxes other than `local` may reach: `none`, `model-only`, `open` or `allow=HOST,HOST`",
        |used| json!(used.run.sandbox.isolation.network.to_string()),
    )
    .flag("--network", |args| args.sandboxes.network.is_some())
    .variables(&["TRIALRUN_NETWORK"], |args, text| parse(&mut args.sandboxes.network, text))
    .key("sandbox.network", |used| project(&used.project().isolation.network))
    .default("model-only")
    .applies(Applies::OverCase),
    Setting::new("keep_sandbox", "Keep sandboxes for inspection", |used| json!(used.run.sandbox.keep))
        .flag("--keep-sandbox", |args| args.sandboxes.keep_sandbox)
        .variables(&["ASE_KEEP_WORKSPACE"], |args, text| {
            args.sandboxes.keep_sandbox = match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => true,
                "0" | "false" | "no" | "off" => false,
                _ => return Err("write `1` or `0`".to_owned()),
            };
            Ok(())
        }),
    Setting::new("pre_run_commands", "Run this shell command before any trial; if it fails, nothing runs", |used| {
        json!(used.args.hooks.pre_run_commands)
    })
    .flag("--pre-run-command", |args| !args.hooks.pre_run_commands.is_empty()),
    Setting::new(
        "post_grade_commands",
        "Run this shell command after each trial is graded, while its sandbox exists; its findings count",
        |used| json!(used.args.hooks.post_grade_commands),
    )
    .flag("--post-grade-command", |args| !args.hooks.post_grade_commands.is_empty()),
    Setting::new(
        "post_run_commands",
        "Run this shell command after the last trial, even if the run was stopped",
        |used| json!(used.args.hooks.post_run_commands),
    )
    .flag("--post-run-command", |args| !args.hooks.post_run_commands.is_empty()),
    Setting::new("hook_timeout_ms", "Time limit for a hook command; a bare number is in seconds", |used| {
        json!(used.args.hooks.hook_timeout.unwrap_or(crate::hooks::TIMEOUT_MS))
    })
    .variables(&["TRIALRUN_HOOK_TIMEOUT", "ASE_HOOK_TIMEOUT"], |args, text| {
        put(&mut args.hooks.hook_timeout, parse_duration(text))
    })
    .default("10m"),
    Setting::new("artifacts", "Write files about the run and each trial into this directory during the run", |used| {
        json!(used.args.output.artifacts)
    })
    .flag("--artifacts", |args| args.output.artifacts.is_some()),
    Setting::new("report", "Report to write, to standard output or into a file; can be repeated", |used| {
        json!(configured::reports(used.args, used.session))
    })
    .flag("--report", |args| !args.output.report.reports.is_empty())
    .key("report.formats", |used| project_formats(used.project()))
    .default("terminal"),
    Setting::new("github", "Also write annotations and the step summary of GitHub Actions", |used| {
        json!(used.args.output.github)
    })
    .flag("--github", |args| args.output.github || args.output.no_github)
    .variables(&["TRIALRUN_GITHUB", "GITHUB_ACTIONS"], |args, text| {
        args.output.github = parse_bool(text)?;
        Ok(())
    })
    .default("on if GITHUB_ACTIONS is true"),
    Setting::new(TRACEPARENT, "Trace that the run is part of, as a W3C `traceparent`, for the `otlp` report", |used| {
        json!(used.args.output.traceparent)
    })
    .variables(&["TRACEPARENT"], |args, text| put(&mut args.output.traceparent, Ok(text.to_owned()))),
    Setting::new("judge", "Model that judges and plays users, as `provider:model`; `\"\"` for no judge", |used| {
        json!(used.run.judge())
    })
    .flag("--judge", |args| args.judging.judge.is_some())
    .variables(&["TRIALRUN_JUDGE"], |args, text| put(&mut args.judging.judge, Ok(text.to_owned())))
    .key("judge.model", |used| project(&used.project().judge.model))
    .default("the first with a key"),
    Setting::new("judge_base_url", "Base URL of the judge's API, if not the vendor's own", |used| {
        json!(used.run.judge.base_url.as_deref().or(configured::openai_address(used.run, used.session)))
    })
    .flag("--judge-base-url", |args| args.judging.judge_base_url.is_some())
    .variables(&["TRIALRUN_JUDGE_BASE_URL"], |args, text| put(&mut args.judging.judge_base_url, Ok(text.to_owned())))
    .key("judge.base_url", |used| match used.run.judge.base_url {
        Some(_) => project(&used.project().judge.base_url),
        None => {
            configured::openai_address(used.run, used.session).map(|_| Layer::Environment(configured::OPENAI_BASE_URL.to_owned()))
        }
    }),
    Setting::new("judges", "Number of judges per judged assertion", |used| json!(used.run.judge.judges))
        .flag("--judges", |args| args.judging.judges.is_some())
        .variables(&["TRIALRUN_JUDGES"], |args, text| put(&mut args.judging.judges, parse_judges(text)))
        .key("judge.judges", |used| project(&used.project().judge.judges))
        .default("1")
        .applies(Applies::UnderCase),
    Setting::new(
        "judge_sample",
        "Trials that the judge decides, chosen at random: a number, or a share such as `20%`",
        |used| json!(used.run.judge.sample.map(|sample| sample.to_string())),
    )
    .flag("--judge-sample", |args| args.judging.judge_sample.is_some())
    .variables(&["TRIALRUN_JUDGE_SAMPLE"], |args, text| parse(&mut args.judging.judge_sample, text))
    .key("judge.sample", |used| project(&used.project().judge.sample))
    .default("all"),
    Setting::new("judge_batch", "Ask about all judged assertions of a trial in as few requests as possible", |used| {
        json!(used.run.judge.batch)
    })
    .flag("--judge-batch", |args| args.judging.judge_batch)
    .variables(&["TRIALRUN_JUDGE_BATCH"], |args, text| {
        args.judging.judge_batch = parse_bool(text)?;
        Ok(())
    })
    .key("judge.batch", |used| project(&used.project().judge.batch))
    .default("false"),
    Setting::new(
        "judge_cache",
        "Judgements of earlier runs: use (`auto`), ignore (`off`), replace (`refresh`), or use in all trials (`share`)",
        |used| json!(used.run.judge.cache.name()),
    )
    .flag("--judge-cache", |args| args.judging.judge_cache.is_some())
    .variables(&["TRIALRUN_JUDGE_CACHE"], |args, text| parse(&mut args.judging.judge_cache, text))
    .key("judge.cache", |used| project(&used.project().judge.cache))
    .default("auto"),
    Setting::new(
        "judge_calibration",
        "Calibration that the judge needs, otherwise its assertions stay undecided; `\"\"` for none",
        |used| json!(used.run.judge.gate.as_ref().map(|gate| &gate.file)),
    )
    .flag("--judge-calibration", |args| args.judging.judge_calibration.is_some())
    .variables(&["TRIALRUN_JUDGE_CALIBRATION"], |args, text| {
        put(&mut args.judging.judge_calibration, Ok(text.to_owned()))
    })
    .key("judge.calibration", |used| project(&used.project().judge.calibration)),
    Setting::new("judge_min_kappa", "Minimum of the lower limit of κ in the calibration", |used| {
        json!(calibration::min_kappa(used.args, used.session))
    })
    .flag("--judge-min-kappa", |args| args.judging.judge_min_kappa.is_some())
    .variables(&["TRIALRUN_JUDGE_MIN_KAPPA"], |args, text| put(&mut args.judging.judge_min_kappa, parse_share(text)))
    .key("judge.min_kappa", |used| project(&used.project().judge.min_kappa))
    .default("0.4"),
    Setting::new("skills_dir", "Folder with the skills", |used| used.shown(&used.project().skills_dir))
        .key("skills_dir", |used| used.moved(Some(&used.project().skills_dir), "skills"))
        .default("skills"),
    Setting::new("tests", "Folder with suites that do not belong to a skill", |used| {
        used.project().tests.as_deref().map_or(Value::Null, |tests| used.shown(tests))
    })
    .key("tests", |used| used.moved(used.project().tests.as_ref(), "tests"))
    .default("tests"),
    // Resolved before all other settings.
    Setting {
        flag: Some("--state"),
        variables: &[STATE],
        ..Setting::new("state", "Folder for recorded runs, or URL of a PostgreSQL database", |used| {
            json!(used.session.state.shown(&used.session.cwd))
        })
            .key("state", |used| Some(used.session.state.from.clone()))
            .default(".trialrun")
    },
];

const TIMEOUT: &[&str] = &["TRIALRUN_TIMEOUT", "ASE_AGENT_TIMEOUT"];

fn put_timeout(args: &mut Overrides, text: &str) -> Result<(), String> {
    put(&mut args.schedule.timeout, Timeout::parse(text))
}

fn put<T>(field: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *field = Some(value?);
    Ok(())
}

fn parse<T: FromStr<Err = InvalidText>>(field: &mut Option<T>, text: &str) -> Result<(), String> {
    put(field, text.parse().map_err(|error: InvalidText| error.to_string()))
}

fn split_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn whole_number(text: &str, least: u64) -> Result<u64, String> {
    let value = text.parse().ok().filter(|value| *value >= least);
    value.ok_or_else(|| format!("a whole number of at least {least}"))
}

fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("`true` or `false`".to_owned()),
    }
}

fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "a whole number".to_owned())
}

/// Returns the configuration as the layer, if it contains that setting.
fn project<T>(setting: &Option<suite::Setting<T>>) -> Option<Layer> {
    let source = &setting.as_ref()?.source;
    Some(Layer::Project(format!("{}:{}", source.file, source.line)))
}

fn project_formats(project: &Project) -> Option<Layer> {
    let first = project.reports.formats.as_ref()?.first()?;
    Some(Layer::Project(format!("{}:{}", first.source.file, first.source.line)))
}

#[cfg(test)]
mod tests;
