//! Parses shell command lines, as far as their text allows, into commands and words.

mod invocation;
mod script;

pub(crate) use self::invocation::is_before_command;
pub(crate) use self::invocation::{invocations, is_no_program, is_run_of};
pub use self::script::{ScriptFiles, is_check, recipes, scripts_in, scripts_of};

/// Maximum nesting of command lines inside command lines.
const MAX_DEPTH: usize = 8;

/// Maximum number of unterminated inner command lines. After that, no more are searched for.
const MAX_UNCLOSED: usize = 16;

/// Command with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    /// Its words, without quotes.
    pub words: Vec<String>,
    /// True if its output goes to another command or a file.
    pub hands_on: bool,
}

/// Returns the commands in `line`. Those inside `$(…)` come after the command that contains them.
pub(crate) fn commands(line: &str) -> Vec<Simple> {
    commands_within(line, 0)
}

/// Returns `true` if `line` has what is written in patterns and not in commands: a bracket after a word, as in
/// `git (push|pull)`, or a backslash before a letter in a word, as in `git\s+push`.
pub(crate) fn has_notation(line: &str) -> bool {
    let mut lexer = Lexer { letters: line.chars().collect(), ..Lexer::default() };
    lexer.run(MAX_DEPTH - 1);
    lexer.has_notation
}

/// Returns the commands in `line`, without those inside `$(…)`.
fn outer_commands(line: &str) -> Vec<Simple> {
    commands_within(line, MAX_DEPTH - 1)
}

fn commands_within(line: &str, depth: usize) -> Vec<Simple> {
    let mut lexer = Lexer { letters: line.chars().collect(), ..Lexer::default() };
    if depth < MAX_DEPTH {
        lexer.run(depth);
    }
    lexer.commands
}

#[derive(Default)]
struct Lexer {
    letters: Vec<char>,
    at: usize,
    commands: Vec<Simple>,
    words: Vec<String>,
    word: Option<String>,
    /// True if the output of the command that is being read goes to another command or a file.
    hands_on: bool,
    /// Command lines inside the command that is being read.
    inner: Vec<String>,
    /// Number of inner command lines that were not terminated.
    unclosed: usize,
    /// True after something that is written in patterns.
    has_notation: bool,
}

impl Lexer {
    fn run(&mut self, depth: usize) {
        let mut documents: Vec<String> = Vec::new();
        while let Some(letter) = self.take() {
            match letter {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' => {
                    self.end_command(depth);
                    for end in documents.drain(..) {
                        self.skip_document(&end);
                    }
                }
                '#' if self.word.is_none() => self.skip_while(|letter| letter != '\n'),
                '(' => {
                    let last = self.word.as_ref().or(self.words.last());
                    let is_after_sign = self.at > 1 && "<>=!@?*+".contains(self.letters[self.at - 2]);
                    self.has_notation |= last.is_some_and(|last| !is_before_command(last)) && !is_after_sign;
                    self.end_command(depth);
                }
                ';' | ')' => self.end_command(depth),
                '&' | '|' => {
                    self.hands_on |= letter == '|' && self.peek() != Some('|');
                    self.skip_while(|next| next == '&' || next == '|');
                    self.end_command(depth);
                }
                '<' | '>' => documents.extend(self.redirection(letter)),
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '\\' => match self.take() {
                    Some('\n') | None => {}
                    Some(next) => {
                        self.has_notation |= next.is_ascii_alphabetic() && self.word.is_some();
                        self.push(next);
                    }
                },
                '$' | '`' => self.dollar(letter),
                other => self.push(other),
            }
        }
        self.end_command(depth);
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    fn skip_while(&mut self, is: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&is) {
            self.at += 1;
        }
    }

    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self, depth: usize) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        let hands_on = std::mem::take(&mut self.hands_on);
        if !words.is_empty() {
            self.commands.push(Simple { words, hands_on });
        }
        for line in std::mem::take(&mut self.inner) {
            self.commands.extend(commands_within(&line, depth + 1));
        }
    }

    fn single_quoted(&mut self) {
        let word = self.word.get_or_insert_default();
        while let Some(letter) = self.letters.get(self.at) {
            self.at += 1;
            if *letter == '\'' {
                return;
            }
            word.push(*letter);
        }
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(letter) = self.take() {
            match letter {
                '"' => return,
                '\\' => match self.take() {
                    Some(next @ ('"' | '\\' | '$' | '`')) => self.push(next),
                    Some('\n') | None => {}
                    Some(next) => {
                        self.push('\\');
                        self.push(next);
                    }
                },
                '$' | '`' => self.dollar(letter),
                other => self.push(other),
            }
        }
    }

    /// Reads a command substitution inside a word, or only the letter.
    fn dollar(&mut self, letter: char) {
        self.push(letter);
        // Searching for a missing end is slow.
        if self.unclosed == MAX_UNCLOSED {
            return;
        }
        let rest = &self.letters[self.at..];
        let length = match letter {
            '`' => rest.iter().position(|letter| *letter == '`'),
            _ if rest.first() == Some(&'(') => closing(rest),
            _ => return,
        };
        let Some(length) = length else {
            self.unclosed += 1;
            return;
        };
        let inner: String = rest[..length].iter().collect();
        self.at += length + 1;
        self.inner.push(inner.trim_start_matches('(').to_owned());
    }

    /// Skips a redirection and its target. Returns the delimiter if it is a here-document that begins in the next
    /// line.
    fn redirection(&mut self, letter: char) -> Option<String> {
        let stream = self.word.take_if(|word| word.chars().all(|letter| letter.is_ascii_digit()));
        self.end_word();
        let start = self.at;
        self.skip_while(|next| matches!(next, '<' | '>' | '&' | '|' | '-'));
        let sign: String = self.letters[start..self.at].iter().collect();
        self.skip_while(|next| next == ' ' || next == '\t');
        if sign.ends_with('-') && sign.starts_with('&') {
            return None;
        }
        let known = self.words.len();
        while let Some(next) = self.peek().filter(|next| !" \t\r\n;|&()<>".contains(*next)) {
            self.at += 1;
            match next {
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '$' | '`' => self.dollar(next),
                other => self.push(other),
            }
        }
        self.end_word();
        let target = if self.words.len() > known { self.words.pop() } else { None };
        let is_file = target.as_ref().is_some_and(|target| target != "/dev/null") && !sign.ends_with('&');
        self.hands_on |= letter == '>' && is_file && stream.is_none_or(|stream| stream == "1");
        (letter == '<' && (sign == "<" || sign == "<-")).then_some(target).flatten()
    }

    /// Skips the lines of a here-document up to its end.
    fn skip_document(&mut self, end: &str) {
        while self.at < self.letters.len() {
            let line: String = self.letters[self.at..].iter().take_while(|letter| **letter != '\n').collect();
            self.at += line.chars().count() + 1;
            if line.trim_start_matches('\t').trim_end() == end {
                return;
            }
        }
        self.at = self.letters.len();
    }
}

/// Returns the distance to the bracket that closes the first letter.
fn closing(letters: &[char]) -> Option<usize> {
    let mut open = 0_usize;
    let mut quote = None;
    for (index, letter) in letters.iter().enumerate() {
        match (quote, letter) {
            (Some(mark), letter) if mark == *letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(*letter),
            (None, '(') => open += 1,
            (None, ')') => {
                open -= 1;
                if open == 0 {
                    return Some(index);
                }
            }
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        commands(line).into_iter().map(|simple| simple.words.join(" ")).collect()
    }

    fn ran(wanted: &str, line: &str) -> bool {
        let wanted = commands(wanted).remove(0).words;
        commands(line).iter().any(|simple| invocations(&simple.words).iter().any(|found| is_run_of(&wanted, found)))
    }

    #[test]
    fn a_line_is_split_as_in_a_shell() {
        for (line, expected) in [
            ("git add . && git commit -m 'a; b' | cat", vec!["git add .", "git commit -m a; b", "cat"]),
            ("echo \"x $(git rev-parse HEAD)\" y", vec!["echo x $ y", "git rev-parse HEAD"]),
            ("cat <<'EOF' > a.txt\ngit push\nEOF\nls", vec!["cat", "ls"]),
            ("npm test 2>&1 >log.txt; (cd a; make)", vec!["npm test", "cd a", "make"]),
            ("# git push\nls # git push", vec!["ls"]),
            ("a \\\n b\\ c \"d\\\"e\"", vec!["a b c d\"e"]),
            ("cat <<< git; `ls`", vec!["cat", "`", "ls"]),
            ("'never closed", vec!["never closed"]),
            ("", vec![]),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn a_program_is_found_in_command_position() {
        for (wanted, line) in [
            ("go", "cd src && go test ./..."),
            ("git commit", "git -C repo commit -m x"),
            ("git", "/usr/bin/git status"),
            ("python", "python3.11 x.py"),
            ("pytest", "python -m pytest -q"),
            ("npm test", "bash -lc 'cd app && npm test'"),
            ("scripts/check.py", "python3 .claude/skills/x/scripts/check.py config.yml"),
            ("python scripts/check.py", "python3 .claude/skills/x/scripts/check.py config.yml"),
            ("./build.sh", "sh build.sh"),
            ("eslint", "CI=1 npx --yes eslint ."),
            ("ruff check", "uv run --no-sync ruff check ."),
            ("pytest -q", "timeout 30 pytest tests -q"),
            ("git push origin main", "if true; then git push -u origin main; fi"),
            ("jq", "cat x | xargs -n1 jq ."),
            ("rm", "ls | xargs -I {} rm {}"),
            ("rm -rf", "find . -name a -exec echo {} + -exec rm -rf {} \\;"),
            ("curl", "eval 'curl example.com'"),
            ("git push", "eval git push"),
            ("git add", "su -c \"git add .\" bob"),
            ("git pull", "sudo -nu bob -- git pull"),
            ("git tag", "trap \"git tag x\" EXIT"),
            ("make", "timeout -s KILL 2m time -p make"),
            ("make", "chroot --userspec=a / make"),
            ("git log", "flock /tmp/lock -c 'git log'"),
        ] {
            assert!(ran(wanted, line), "{wanted} in {line}");
        }
        for (wanted, line) in [
            ("go", "echo algorithm"),
            ("git", "echo git"),
            ("git commit", "git log --oneline commit"),
            ("git push", "cat <<EOF\ngit push\nEOF"),
            ("git push", "echo 'git push'"),
            ("npm", "cat npmrc"),
            ("pytest tests/unit", "pytest tests/integration"),
            ("git", "command -v git"),
            ("rm", "find . -name rm"),
            ("bob", "sudo -u bob git pull"),
        ] {
            assert!(!ran(wanted, line), "{wanted} in {line}");
        }
    }

    #[test]
    fn excessive_nesting_ends_parsing() {
        assert!(!words(&"$(".repeat(5000)).is_empty());
        assert!(!words(&format!("{}a{}", "$(".repeat(50), ")".repeat(50))).is_empty());
        assert!(invocations(&vec!["sudo".to_owned(); 10_000]).len() <= MAX_DEPTH);
    }
}
