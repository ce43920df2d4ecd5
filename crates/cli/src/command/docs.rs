//! `trialrun docs`: the documentation for users, which is part of the program.

use std::process::ExitCode;

use report::columns;

use crate::error::CliError;
use crate::terminal::Terminal;

/// Names and Markdown of all pages.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Page that is the start of the documentation.
const START: &str = "README";

/// Maximum number of sections that are listed.
const SECTIONS: usize = 10;

/// Maximum number of characters of a line from a section.
const LINE: usize = 96;

/// Beginning of a line below a heading that lists further words under which the section is found, separated by commas.
const INDEX: &str = "<!-- index: ";

/// Arguments of `docs`.
#[derive(Debug, clap::Args)]
pub struct DocsArgs {
    /// Words to search for, or the name of a page such as `how-to/ci` [default: list all pages]
    #[arg(value_name = "WORD|PAGE")]
    words: Vec<String>,
}

/// Prints the page with that name, the sections that contain all words, or the names of all pages.
pub fn run(args: &DocsArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let words: Vec<String> =
        args.words.iter().flat_map(|word| word.split_whitespace()).map(str::to_lowercase).collect();
    if words.is_empty() {
        terminal.out(&list());
        return Ok(ExitCode::SUCCESS);
    }
    if let [name] = &words[..]
        && let Some((_, page)) = page(name)
    {
        terminal.out(&without_comments(page));
        return Ok(ExitCode::SUCCESS);
    }
    let sections = sections();
    let found = search(&sections, &words);
    if found.is_empty() {
        let problem = CliError::nothing(format!("no section contains {}", quoted(&words)));
        return Err(match meant(&sections, &words) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => {
                problem.hint("`trialrun docs` lists all pages; search for fewer words, or for the beginning of a word")
            }
        });
    }
    let style = &terminal.out_style;
    let bold = |text: &str| if style.color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
    let mut text = String::new();
    for section in found.iter().take(SECTIONS) {
        text.push_str(&format!("{}  {}\n", bold(section.page), section.heading));
        text.push_str(&section.line(&words).map_or_else(String::new, |line| format!("  {line}\n")));
    }
    if let Some(more) = found.len().checked_sub(SECTIONS).filter(|more| *more > 0) {
        text.push_str(&format!("and {more} more; add a word to find fewer\n"));
    }
    text.push_str(&format!("\n`trialrun docs {}` prints that page.\n", found[0].page));
    terminal.out(&text);
    Ok(ExitCode::SUCCESS)
}

/// Returns the page with that name, in full or without its folder, and its name.
fn page(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.trim_start_matches("docs/").trim_end_matches(".md");
    let is_last = |page: &str| page.rsplit_once('/').is_some_and(|(_, last)| last == name);
    let exact = PAGES.iter().find(|(page, _)| page.eq_ignore_ascii_case(name));
    let mut by_last = PAGES.iter().filter(|(page, _)| is_last(page));
    exact.or_else(|| by_last.next().filter(|_| by_last.next().is_none())).copied()
}

/// Returns the page without its comments, and without the empty lines around them.
fn without_comments(page: &str) -> String {
    let mut shown = String::with_capacity(page.len());
    for line in page.lines().filter(|line| !line.starts_with("<!--")) {
        if !(line.is_empty() && shown.ends_with("\n\n")) {
            shown.push_str(&format!("{line}\n"));
        }
    }
    shown
}

/// Returns the names of all pages with their titles.
fn list() -> String {
    let rows = || PAGES.iter().filter(|(name, _)| *name != START).map(|(name, page)| (*name, title(page)));
    let width = columns::widest(rows().map(|(name, _)| name));
    let lines: String = rows().map(|(name, title)| format!("{}  {title}\n", columns::padded(name, width))).collect();
    format!("{lines}\n`trialrun docs WORD` searches these pages, and `trialrun docs PAGE` prints one.\n")
}

fn title(page: &str) -> &str {
    page.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
}

/// A section of a page: a heading and the lines up to the next heading.
#[derive(Debug, PartialEq)]
struct Section {
    page: &'static str,
    heading: String,
    /// Words under which it is found, in addition to those that it contains.
    index: Vec<&'static str>,
    lines: Vec<&'static str>,
    /// The lines in lower case.
    text: String,
}

impl Section {
    fn new(page: &'static str, heading: String) -> Self {
        Self { page, heading, index: Vec::new(), lines: Vec::new(), text: String::new() }
    }

    /// Returns how well the section fits; `None` if it lacks a word. Its entries in the index count most, then the
    /// words of its own heading.
    fn rank(&self, words: &[String]) -> Option<usize> {
        let (title, own) = self.heading.rsplit_once(" › ").unwrap_or(("", &self.heading));
        let (title, own) = (title.to_lowercase(), own.to_lowercase());
        let query = words.join(" ");
        let is_indexed = self.index.iter().any(|entry| *entry == query);
        let rank = words.iter().try_fold(0, |sum, word| {
            let mut rank = 20 * usize::from(count(&own, word) > 0)
                + 5 * usize::from(count(&title, word) > 0)
                + 5 * usize::from(count(self.page, word) > 0)
                + 20 * usize::from(self.index.iter().any(|entry| count(entry, word) > 0));
            rank += count(&self.text, word).min(10);
            Some(sum + rank).filter(|_| rank > 0)
        });
        rank.or(is_indexed.then_some(0)).map(|rank| rank + 1000 * usize::from(is_indexed))
    }

    /// Returns the first line with as many of the words as possible.
    fn line(&self, words: &[String]) -> Option<String> {
        let contained = |line: &str| words.iter().filter(|word| count(&line.to_lowercase(), word) > 0).count();
        let lines = self.lines.iter().copied().filter(|line| !line.trim().is_empty() && !line.starts_with("```"));
        // Of equal lines, `max_by_key` returns the last one.
        let line = lines.rev().max_by_key(|line| contained(line))?.trim();
        let cut: String = line.chars().take(LINE).collect();
        Some(if cut.len() < line.len() { format!("{cut}…") } else { cut })
    }
}

/// Returns how often a word of `text` begins with `word`, so that `port` does not find `report`.
fn count(text: &str, word: &str) -> usize {
    let is_at_start = |at: usize| !text[..at].ends_with(char::is_alphanumeric);
    text.match_indices(word).filter(|(at, _)| is_at_start(*at)).count()
}

/// Returns all sections. The heading of a section is preceded by the title of its page.
fn sections() -> Vec<Section> {
    let mut all = Vec::new();
    for &(page, text) in PAGES.iter().filter(|(name, _)| *name != START) {
        let title = title(text);
        let mut section = Section::new(page, title.to_owned());
        let mut is_code = false;
        for line in text.lines() {
            is_code ^= line.trim_start().starts_with("```");
            let heading = line.strip_prefix("##").filter(|_| !is_code).map(|rest| rest.trim_start_matches('#').trim());
            match heading {
                Some(heading) => {
                    let next = Section::new(page, format!("{title} › {heading}"));
                    all.push(std::mem::replace(&mut section, next));
                }
                None if line.starts_with(INDEX) => {
                    let entries = line.trim_start_matches(INDEX).trim_end_matches(" -->");
                    section.index.extend(entries.split(", "));
                }
                None if line.starts_with("# ") || line.starts_with("<!--") => {}
                None => {
                    section.lines.push(line);
                    section.text.push_str(&format!("{}\n", line.to_lowercase()));
                }
            }
        }
        all.push(section);
    }
    all
}

/// Returns the sections that contain all words, the best first.
fn search<'a>(sections: &'a [Section], words: &[String]) -> Vec<&'a Section> {
    let mut found: Vec<(usize, &Section)> =
        sections.iter().filter_map(|section| Some((section.rank(words)?, section))).collect();
    found.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    found.into_iter().map(|(_, section)| section).collect()
}

/// Returns the word of a heading or of a page's name that was probably meant by the first word that no section contains.
fn meant(sections: &[Section], words: &[String]) -> Option<String> {
    let unknown = words.iter().find(|word| search(sections, std::slice::from_ref(*word)).is_empty())?;
    let headings: String =
        sections.iter().map(|section| format!("{} {} ", section.page, section.heading.to_lowercase())).collect();
    // A short word is near to many others.
    let known = headings.split(|one: char| !one.is_alphanumeric()).filter(|word| word.len() > 3);
    model::nearest(unknown, known).map(str::to_owned)
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that users type, each with the page that the first hit is on.
    const FIRST: [(&str, &str); 50] = [
        ("p-value", "explanation/rates"),
        ("flaky", "explanation/rates"),
        ("pass rate", "explanation/rates"),
        ("confidence interval", "explanation/rates"),
        ("pass@k", "explanation/rates"),
        ("recall", "explanation/rates"),
        ("exit code", "reference/exit-codes"),
        ("ctrl-c", "reference/exit-codes"),
        ("timeout", "how-to/budgets"),
        ("max tokens", "how-to/budgets"),
        ("port", "how-to/your-own-agent"),
        ("server", "how-to/your-own-agent"),
        ("python", "how-to/python"),
        ("mask", "masking"),
        ("secrets", "masking"),
        ("retry", "explanation/verdicts"),
        ("outcome", "explanation/verdicts"),
        ("context window", "explanation/verdicts"),
        ("undecided", "explanation/verdicts"),
        ("cost", "reference/costs"),
        ("prices", "reference/costs"),
        ("docker", "how-to/containers"),
        ("baseline", "how-to/compare"),
        ("regression", "how-to/compare"),
        ("judge", "how-to/judges"),
        ("cassette", "how-to/cassettes"),
        ("cassette record", "how-to/cassettes"),
        ("stale", "how-to/cassettes"),
        ("offline", "reference/scripted-model"),
        ("mock", "reference/scripted-model"),
        ("api key", "how-to/sign-in"),
        ("login", "how-to/sign-in"),
        ("network", "explanation/isolation"),
        ("sandbox", "explanation/isolation"),
        ("pull request", "explanation/isolation"),
        ("environment variable", "reference/configuration"),
        ("jobs", "reference/configuration"),
        ("rate limit", "reference/configuration"),
        ("watch", "how-to/debug-a-trial"),
        ("failed", "how-to/debug-a-trial"),
        ("shard", "how-to/ci"),
        ("quarantine", "how-to/quarantine"),
        ("hook", "how-to/hooks"),
        ("setup", "reference/scenario"),
        ("skip", "reference/scenario"),
        ("csv", "how-to/cases-from-a-table"),
        ("typescript", "reference/tests-as-code"),
        ("regex", "reference/assertions"),
        ("junit", "reference/reports"),
        ("database", "reference/record"),
    ];

    #[test]
    fn the_first_hit_is_about_the_words() {
        let sections = sections();
        let first = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            search(&sections, &words).first().map(|section| section.page)
        };
        for (words, page) in FIRST {
            assert_eq!(first(words), Some(page), "{words}");
        }
        assert_eq!(first("xyzzy"), None);
    }

    #[test]
    fn a_misspelt_word_is_corrected_by_a_word_of_a_heading() {
        let meant =
            |words: &[&str]| meant(&sections(), &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(meant(&["refrence"]).as_deref(), Some("reference"));
        assert_eq!(meant(&["judge", "asertions"]).as_deref(), Some("assertions"));
        assert_eq!(meant(&["xyzzy"]), None);
    }

    #[test]
    fn no_two_sections_have_the_same_word_in_their_index() {
        let mut all: Vec<&str> = sections().into_iter().flat_map(|section| section.index).collect();
        all.sort_unstable();
        let twice: Vec<_> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
        assert!(all.iter().all(|entry| *entry == entry.to_lowercase()), "{all:?}");
    }

    #[test]
    fn a_page_is_found_by_its_name() {
        for name in ["how-to/ci", "docs/how-to/ci.md", "ci"] {
            assert_eq!(page(name).map(|(name, _)| name), Some("how-to/ci"), "{name}");
        }
        assert_eq!(page("how-to"), None);
    }

    #[test]
    fn a_page_is_shown_without_its_comments() {
        assert_eq!(without_comments("# A\n\n<!-- index: b -->\n\nText.\n"), "# A\n\nText.\n");
    }

    #[test]
    fn every_page_has_a_title() {
        for (name, page) in PAGES {
            assert!(!title(page).is_empty(), "{name}");
        }
    }
}
