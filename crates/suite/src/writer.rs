//! Writes loaded cases as files of trialrun: conversations, scenarios and skill evaluations. What a case has and the
//! format cannot say is refused, so that a file that was written has the verdicts of the case.

mod conversation;
mod document;
mod evals;
mod graders;
mod parts;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use model::{Case, Diagnostic, Scoring, Subject, Suite};

use self::document::Document;
use crate::coverage::{Coverage, CoveredKey, Treatment};
use crate::format;

/// Format of the files to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenFormat {
    /// One case for each file, with a skill or a system prompt as its subject.
    Scenario,
    /// One case for each file, with an agent as its subject, or what is installed for it.
    Conversation,
    /// All cases of a suite in one file, with a skill or a sub-agent that is only installed as their subject.
    Evals,
}

impl WrittenFormat {
    /// All formats with their names.
    pub const NAMED: [(&'static str, Self); 3] =
        [("scenario", Self::Scenario), ("conversation", Self::Conversation), ("evals", Self::Evals)];

    /// Returns the format that can say what `case` tests.
    fn of(case: &Case) -> Self {
        match case.subject {
            Subject::Skill(_) | Subject::Prompt(_) => Self::Scenario,
            Subject::Installed(_) if evals::obstacle(case).is_none() => Self::Evals,
            Subject::Installed(_) | Subject::Agent => Self::Conversation,
        }
    }

    /// Returns `true` if the format has cases with the subject of `case`.
    fn has_subject_of(self, case: &Case) -> bool {
        match case.subject {
            Subject::Skill(_) | Subject::Prompt(_) => self == Self::Scenario,
            Subject::Installed(_) => self != Self::Scenario,
            Subject::Agent => self == Self::Conversation,
        }
    }
}

/// Files that were written from suites.
#[derive(Debug, Default)]
pub struct Written {
    /// The files, with different paths.
    pub files: Vec<WrittenFile>,
    /// Number of cases in the files.
    pub cases: usize,
    /// A problem for each case that cannot be written.
    pub refused: Vec<Diagnostic>,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Path relative to the folder of the output.
    pub path: PathBuf,
    /// Content.
    pub content: Vec<u8>,
    /// True if it is executable.
    pub executable: bool,
}

/// Writes the cases of `suites` to files in the absolute folder `output`. `coverage` says what was read of their files;
/// what has no effect becomes comments. Without a format, each case gets the one for its subject.
pub fn write(suites: &[Suite], coverage: &[Coverage], format: Option<WrittenFormat>, output: &Path) -> Written {
    let mut written = Written::default();
    let mut names = Names::default();
    for suite in suites {
        let mut evals = Vec::new();
        for case in &suite.cases {
            let wanted = format.unwrap_or_else(|| WrittenFormat::of(case));
            let mut problems = reasons(case, wanted);
            if !wanted.has_subject_of(case) {
                problems.push(wrong_subject(case, wanted));
            }
            if let Some(problem) = problems.into_iter().next() {
                written.refused.push(refusal(case, &problem));
                continue;
            }
            match wanted {
                WrittenFormat::Evals => evals.push(case),
                WrittenFormat::Scenario | WrittenFormat::Conversation => {
                    let stem = names.of_case(suite, case);
                    let mut parts = parts::Parts::new(output, &stem);
                    match conversation::write(case, wanted, &mut parts) {
                        Ok(body) => {
                            let text = head(suite, coverage, Some(case)).with(&body).finish();
                            written.add(&format!("{stem}.yaml"), text, parts);
                            written.cases += 1;
                        }
                        Err(reason) => written.refused.push(refusal(case, &reason)),
                    }
                }
            }
        }
        if !evals.is_empty() {
            let stem = names.of(&format!("{}-evals", suite.name));
            let mut parts = parts::Parts::new(output, &stem);
            let (body, count, refused) = evals::write(&evals, &mut parts);
            written.refused.extend(refused);
            if count > 0 {
                let text = head(suite, coverage, None).with(&body).finish();
                written.add(&format!("{stem}.yaml"), text, parts);
                written.cases += count;
            }
        }
    }
    written
}

impl Written {
    fn add(&mut self, path: &str, text: String, parts: parts::Parts<'_>) {
        self.files.push(WrittenFile { path: PathBuf::from(path), content: text.into_bytes(), executable: false });
        self.files.extend(parts.files);
    }
}

/// Returns the share of its weights with which a trial passes, if not simply every assertion must be met.
fn threshold(case: &Case) -> Option<f64> {
    let scoring = case.ruling.scoring.as_ref()?;
    let counts = case.assertions.iter().all(|spec| spec.weight > 0.0);
    let is_plain = counts && case.indicators.is_empty() && scoring.pass_score >= scoring.max_score;
    (!is_plain).then(|| Scoring::share(scoring))
}

/// Returns the reasons why the format cannot say what the case has.
fn reasons(case: &Case, format: WrittenFormat) -> Vec<String> {
    let broken = case.broken.first().map(|problem| format!("it is broken: {}", problem.message));
    let image = case.needs_image.first().map(|problem| format!("it needs an image of its own: {}", problem.message));
    let code = case.code.is_some().then(|| "its messages are in code".to_owned());
    let is_plain = format != WrittenFormat::Conversation;
    let adds_prompt = is_plain && case.system_prompt.is_some();
    let prompt = adds_prompt.then(|| "it adds to the system prompt of the agent".to_owned());
    let history = case.history.is_some().then(|| "it continues an earlier conversation".to_owned());
    let indicators = (is_plain && !case.indicators.is_empty()).then(|| {
        "some assertions only show whether the plug-in was used, and count only if there are no others".to_owned()
    });
    let scoring = threshold(case).filter(|_| format == WrittenFormat::Evals);
    let scoring = scoring.map(|_| "it passes with a part of its score".to_owned());
    let not = case.ruling.not.then(|| "it passes if its assertions do not hold".to_owned());
    [broken, image, code, prompt, history, indicators, scoring, not].into_iter().flatten().collect()
}

fn wrong_subject(case: &Case, wanted: WrittenFormat) -> String {
    let subject = match case.subject {
        Subject::Skill(_) | Subject::Prompt(_) => "a skill or a system prompt, which the agent is given",
        Subject::Installed(_) => "a skill, a sub-agent or a plug-in that is installed",
        Subject::Agent => "an agent alone",
    };
    let names = WrittenFormat::NAMED.iter().find(|(_, format)| *format == wanted);
    let name = names.map_or("", |(name, _)| name);
    format!("it tests {subject}, which the format `{name}` cannot say")
}

fn refusal(case: &Case, reason: &str) -> Diagnostic {
    Diagnostic::error(format!("`{}` cannot be written: {reason}", case.id)).at(case.source.clone())
}

/// Names of files so far.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn of_case(&mut self, suite: &Suite, case: &Case) -> String {
        self.of(&format!("{}-{}", suite.name, case.id))
    }

    /// Returns a name for a file that is like `text`.
    fn of(&mut self, text: &str) -> String {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '-' };
        let plain: String = text.chars().map(plain).take(80).collect();
        let parts: Vec<&str> = plain.split('-').filter(|part| !part.is_empty()).collect();
        let joined = parts.join("-");
        let stem = joined.trim_matches('_');
        // Other tools recognise their suites by their names.
        let is_taken = stem.is_empty() || format::named(Path::new(&format!("{stem}.yaml"))).is_some();
        let stem = if is_taken { format!("case-{stem}") } else { stem.to_owned() };
        let stem = stem.trim_end_matches('-');
        let mut name = stem.to_owned();
        let mut number = 1;
        while !self.0.insert(name.to_ascii_lowercase()) {
            number += 1;
            name = format!("{stem}-{number}");
        }
        name
    }
}

/// Returns the beginning of a file: where it is from, and which keys of that file have no effect.
fn head(suite: &Suite, coverage: &[Coverage], case: Option<&Case>) -> Document {
    let mut document = Document::default();
    let source = case.map_or_else(|| suite.path.display().to_string(), |case| case.source.file.to_string());
    document.comment(&format!("From `{source}`, a suite in the format `{}`.", suite.format));
    let folder = Path::new(&source).parent().unwrap_or(Path::new(""));
    let is_own = |file: &&Coverage| match case {
        // The parts of a case of another tool are in the folder of its file.
        Some(_) => file.file == source || (file.format == "harbor" && Path::new(&file.file).starts_with(folder)),
        None => Path::new(&file.file).starts_with(folder),
    };
    let mut lines = Vec::new();
    for file in coverage.iter().filter(is_own) {
        for CoveredKey { key, consequence, source, .. } in
            file.keys.iter().filter(|key| key.treatment == Treatment::Ignored)
        {
            let consequence = consequence.as_deref().unwrap_or_default();
            lines.push(format!("`{key}` ({}:{}): {consequence}", source.file, source.line));
        }
    }
    if !lines.is_empty() {
        document.comment("Keys without effect:");
        lines.iter().for_each(|line| document.comment(&format!("- {line}")));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_of_files_are_plain_and_different() {
        let mut names = Names::default();
        let all = ["a/b c", "A-b-c", "..", "é", "x_", "promptfooconfig-a"].map(|text| names.of(text));
        assert_eq!(all, ["a-b-c", "A-b-c-2", "case", "case-2", "x", "case-promptfooconfig-a"]);
    }
}
