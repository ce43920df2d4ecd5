//! Answers an agent's questions with the case's prepared answers.

use model::decode::Problems;
use model::{Diagnostic, Question, UserResponse};
use script::Regex;

use crate::as_written;

/// Prepared answers for one trial. Each is used once.
#[derive(Debug, Clone, Default)]
pub struct Responder {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// Index of the answer in the case.
    index: usize,
    question: Regex,
    choose: String,
    used: bool,
}

impl Responder {
    /// Compiles the prepared answers of a case, and reports every invalid pattern. Clone the responder for each trial.
    pub fn compile(responses: &[UserResponse]) -> (Self, Vec<Diagnostic>) {
        let mut problems = Problems::new();
        let mut entries = Vec::with_capacity(responses.len());
        for (index, response) in responses.iter().enumerate() {
            match Regex::parse(&response.match_question.value) {
                Ok(question) => {
                    let written = &response.match_question.value;
                    problems.extend(as_written::slashes(written, response.source.clone(), as_written::FLAGS_IN_FRONT));
                    entries.push(Entry { index, question, choose: response.choose.clone(), used: false });
                }
                Err(error) => {
                    let problem = Diagnostic::error(error.to_string()).at(response.source.clone());
                    problems.push(error.help().into_iter().fold(problem, Diagnostic::help));
                }
            }
        }
        (Self { entries }, problems)
    }

    /// Answers `question` with the first unused prepared answer whose pattern matches, and marks that answer as used.
    /// Either sets the question's `answer` and `response`, or leaves both empty; in that case, `undecided` names the
    /// pattern that might have matched but could not be decided. Returns warnings for the user.
    ///
    /// The answer is one of the question's labels, even if it is written with different case or spaces. For a question
    /// with several choices it may be several labels separated by commas. Anything else is given as free text, with a
    /// warning if the question has labels.
    pub fn answer(&mut self, question: &mut Question) -> Vec<String> {
        let mut warnings = Vec::new();
        (question.answer, question.response, question.undecided) = (None, None, None);
        for entry in self.entries.iter_mut().filter(|entry| !entry.used) {
            match entry.question.is_match(&question.question) {
                Ok(true) => {
                    entry.used = true;
                    let (answer, warning) = choice(&entry.choose, question);
                    warnings.extend(warning);
                    (question.answer, question.response) = (Some(answer), Some(entry.index));
                    question.undecided = None;
                    break;
                }
                Ok(false) => {}
                Err(error) => {
                    let message = format!("user_responses[{}], {}: {error}", entry.index, entry.question);
                    question.undecided.get_or_insert_with(|| message.clone());
                    warnings.push(message);
                }
            }
        }
        warnings
    }

    /// Returns the indices of the case's answers that were not used.
    pub fn unused(&self) -> Vec<usize> {
        self.entries.iter().filter(|entry| !entry.used).map(|entry| entry.index).collect()
    }
}

/// Returns the answer for the choice `written`, with a warning if it is not one of the labels.
fn choice(written: &str, question: &Question) -> (String, Option<String>) {
    if question.options.is_empty() {
        return (written.to_owned(), None);
    }
    let label = |written: &str| {
        let wanted = written.trim().to_lowercase();
        let options = &question.options;
        let exact = options.iter().find(|option| *option == written);
        exact.or_else(|| options.iter().find(|option| option.trim().to_lowercase() == wanted)).cloned()
    };
    if let Some(label) = label(written) {
        return (label, None);
    }
    if question.multi_select
        && let Some(labels) = written.split(',').map(label).collect::<Option<Vec<String>>>()
    {
        return (labels.join(", "), None);
    }
    let labels: Vec<String> = question.options.iter().map(|option| format!("\"{option}\"")).collect();
    let warning = format!(
        "\"{written}\" is not one of the choices of \"{}\" ({}); it was sent as free text",
        question.question,
        labels.join(", ")
    );
    (written.to_owned(), Some(warning))
}

#[cfg(test)]
pub(crate) mod tests {
    use model::{Excerpt, Span, Spanned};

    use super::*;

    pub(crate) fn response(pattern: &str, choose: &str) -> UserResponse {
        UserResponse {
            match_question: Spanned::new(pattern.into(), Span::default()),
            choose: choose.into(),
            source: Excerpt::of_file("a.yaml"),
        }
    }

    fn question(text: &str, options: &[&str]) -> Question {
        Question {
            call_id: None,
            question: text.into(),
            options: options.iter().map(|&option| option.into()).collect(),
            multi_select: false,
            answer: None,
            response: None,
            undecided: None,
        }
    }

    fn responder(responses: &[(&str, &str)]) -> Responder {
        let responses: Vec<_> = responses.iter().map(|(pattern, choose)| response(pattern, choose)).collect();
        let (responder, problems) = Responder::compile(&responses);
        assert_eq!(problems, []);
        responder
    }

    #[test]
    fn the_first_unused_response_that_matches_answers_once() {
        let mut responder = responder(&[("(?i)push", "No"), ("(?i)commit|push", "Yes"), ("never", "x")]);
        let mut asked = |text: &str| {
            let mut question = question(text, &[]);
            assert_eq!(responder.answer(&mut question), Vec::<String>::new());
            (question.answer, question.response)
        };
        assert_eq!(asked("Commit?"), (Some("Yes".into()), Some(1)));
        assert_eq!(asked("Push?"), (Some("No".into()), Some(0)));
        assert_eq!(asked("Push again?"), (None, None));
        assert_eq!(responder.unused(), [2]);
    }

    #[test]
    fn a_choice_is_a_label_or_free_text_with_a_warning() {
        let chosen = |choose: &str, options: &[&str], multi_select: bool| {
            let mut question = question("Which?", options);
            question.multi_select = multi_select;
            let warnings = responder(&[(".", choose)]).answer(&mut question);
            (question.answer.unwrap(), warnings.len())
        };
        assert_eq!(chosen("Red", &["red", "Red"], false), ("Red".into(), 0));
        assert_eq!(chosen(" red ", &["Red", "Blue"], false), ("Red".into(), 0));
        assert_eq!(chosen("blue,RED", &["Red", "Blue"], true), ("Blue, Red".into(), 0));
        assert_eq!(chosen("Red, Blue", &["Red", "Blue"], false), ("Red, Blue".into(), 1));
        assert_eq!(chosen("Green", &["Red", "Blue"], true), ("Green".into(), 1));
        assert_eq!(chosen("Green", &[], false), ("Green".into(), 0));
    }

    #[test]
    fn every_invalid_pattern_is_reported_at_its_location() {
        let (_, problems) = Responder::compile(&[response("(", "x"), response("ok", "x"), response("(?x)a", "x")]);
        assert_eq!(problems.len(), 2);
        assert!(problems.iter().all(|problem| problem.is_error() && problem.source.is_some()));
        assert!(!problems[1].help.is_empty());
    }

    #[test]
    fn an_endless_pattern_is_reported_and_skipped() {
        let mut responder = responder(&[("^(a+)+$", "x"), ("b", "y")]);
        let mut question = question(&format!("{}b", "a".repeat(40)), &[]);
        let warnings = responder.answer(&mut question);
        assert_eq!((question.answer.as_deref(), question.undecided), (Some("y"), None));
        assert!(warnings[0].contains("stopped after 250 ms"), "{warnings:?}");
    }

    #[test]
    fn a_question_that_only_an_endless_pattern_might_match_is_undecided() {
        let mut responder = responder(&[("^(a+)+$", "x"), ("never", "y")]);
        let mut endless = question(&format!("{}!", "a".repeat(40)), &[]);
        responder.answer(&mut endless);
        assert_eq!(endless.answer, None);
        let undecided = endless.undecided.unwrap();
        assert!(undecided.starts_with("user_responses[0]") && undecided.contains("stopped"), "{undecided}");
        let mut plain = question("Push?", &[]);
        responder.answer(&mut plain);
        assert_eq!((plain.answer, plain.undecided), (None, None));
    }
}
