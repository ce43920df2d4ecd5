//! Finds the programs that a command runs indirectly: after `sudo`, inside `bash -c`, as a script.

use super::{MAX_DEPTH, commands_within};

/// Words that come before a command and are not commands.
const RESERVED: [&str; 13] =
    ["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}", "time"];

/// Words that begin something other than a command, up to its end.
const HEADS: [&str; 4] = ["for", "case", "select", "function"];

/// Programs that run the command in their arguments.
const WRAPPERS: &str = "\
    sudo doas env nohup command exec builtin nice ionice timeout xargs stdbuf watch caffeinate npx pnpx bunx \
    uvx setsid strace";

/// Programs with a subcommand that runs the command in its arguments.
const RUNNERS: [(&str, &str); 13] = [
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("pdm", "run"),
    ("hatch", "run"),
    ("rye", "run"),
    ("conda", "run"),
    ("pipx", "run"),
    ("bundle", "exec"),
    ("npm", "exec"),
    ("pnpm", "exec"),
    ("yarn", "exec"),
    ("mise", "exec"),
];

/// Programs that run the script in their arguments.
pub(super) const INTERPRETERS: [&str; 14] =
    ["python", "node", "bash", "sh", "zsh", "dash", "ksh", "ruby", "perl", "php", "deno", "bun", "tsx", "ts-node"];

/// Interpreters that accept a command line with `-c`.
const SHELLS: [&str; 5] = ["bash", "sh", "zsh", "dash", "ksh"];

/// Returns everything that a command runs: the program itself, and the programs that it is known to run. Each comes
/// with its arguments.
pub(crate) fn invocations(words: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    unwrap(words, &mut found, 0);
    found
}

fn unwrap(words: &[String], found: &mut Vec<Vec<String>>, depth: usize) {
    let skipped = words.iter().take_while(|word| is_before_command(word)).count();
    let words = &words[skipped..];
    let Some((program, rest)) = words.split_first() else { return };
    if depth >= MAX_DEPTH || HEADS.contains(&program.as_str()) {
        return;
    }
    found.push(words.to_vec());
    let name = plain_name(program);
    if let Some(code) = code_of(name, rest) {
        for simple in commands_within(code, depth + 1) {
            unwrap(&simple.words, found, depth + 1);
        }
    } else if let Some(next) = next_program(name, rest) {
        unwrap(next, found, depth + 1);
    }
}

/// Returns the part of `rest` that the program `name` runs.
pub(super) fn next_program<'w>(name: &str, rest: &'w [String]) -> Option<&'w [String]> {
    let is_option = |word: &String| word.starts_with('-');
    let is_run = |word: &String| word == "run" && matches!(name, "deno" | "bun");
    let is_time = |word: &String| word.trim_end_matches(['s', 'm', 'h']).parse::<f64>().is_ok();
    let from = if WRAPPERS.split(' ').any(|known| known == name) {
        rest.iter().position(|word| !is_option(word) && !is_assignment(word) && !is_time(word))?
    } else if let Some((_, subcommand)) = RUNNERS.iter().find(|(program, _)| *program == name) {
        let first = rest.iter().position(|word| !is_option(word))?;
        (rest[first] == *subcommand).then_some(())?;
        first + 1 + rest[first + 1..].iter().position(|word| !is_option(word))?
    } else if INTERPRETERS.contains(&name) {
        match rest.iter().position(|word| word == "-m") {
            Some(module) if name == "python" => module + 1,
            _ => rest.iter().position(|word| !is_option(word) && !is_run(word))?,
        }
    } else {
        return None;
    };
    rest.get(from..)
}

/// Returns the command line passed to a shell with `-c`.
pub(super) fn code_of<'w>(name: &str, rest: &'w [String]) -> Option<&'w str> {
    if !SHELLS.contains(&name) {
        return None;
    }
    let is_code = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let at = rest.iter().take_while(|word| word.starts_with('-')).position(is_code)?;
    rest.get(at + 1).map(String::as_str)
}

/// Returns `true` for a word that comes before a command: an assignment or a reserved word.
pub(crate) fn is_before_command(word: &str) -> bool {
    is_assignment(word) || RESERVED.contains(&word)
}

/// Returns `true` if `word` cannot be the program of a command as [`invocations`] returns it.
pub(crate) fn is_no_program(word: &str) -> bool {
    is_before_command(word)
        || HEADS.contains(&word)
        || ["$", "%", "`"].contains(&word)
        || word.starts_with(['-', '^'])
        || word.contains(['*', ',', '^', '?', '#'])
        || (word.len() > 1 && word.ends_with(['$', ':', '.', ']', '/']))
        || (word.contains(' ') && !word.contains('/'))
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Returns the name of a program without its folder and without a version at its end.
pub(super) fn plain_name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    match name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.') {
        "" => name,
        plain => plain,
    }
}

/// Returns `true` if `invocation` runs `wanted`: the same program, followed by the same words. The first of those
/// words must come first and the others in their order. Options may be anywhere.
pub(crate) fn is_run_of(wanted: &[String], invocation: &[String]) -> bool {
    let (Some((program, wanted)), Some((found, rest))) = (wanted.split_first(), invocation.split_first()) else {
        return false;
    };
    is_program(program, found) && has_words(wanted, rest)
}

fn is_program(wanted: &str, found: &str) -> bool {
    let (wanted, found) = (wanted.trim_start_matches("./"), found.trim_start_matches("./"));
    let same = |found: &str| found.eq_ignore_ascii_case(wanted);
    let last = found.len().checked_sub(wanted.len() + 1);
    let ends = last.and_then(|index| found.get(index..)).is_some_and(|end| end.starts_with('/') && same(&end[1..]));
    same(found) || ends || same(plain_name(found))
}

fn has_words(wanted: &[String], rest: &[String]) -> bool {
    let is_option = |word: &&String| word.starts_with('-');
    if !wanted.iter().filter(is_option).all(|option| rest.contains(option)) {
        return false;
    }
    let mut index = 0;
    for (number, word) in wanted.iter().filter(|word| !is_option(word)).enumerate() {
        loop {
            let Some(found) = rest.get(index) else { return false };
            index += 1;
            if is_argument(word, found) {
                break;
            }
            let takes_value = found.starts_with('-') && !found.starts_with("--");
            if takes_value && rest.get(index).is_some_and(|value| !is_argument(word, value) && !value.starts_with('-'))
            {
                index += 1;
            } else if number == 0 && !found.starts_with('-') {
                return false;
            }
        }
    }
    true
}

fn is_argument(wanted: &str, found: &str) -> bool {
    let (wanted, found) = (wanted.trim_start_matches("./"), found.trim_start_matches("./"));
    found == wanted
        || (wanted.contains(['/', '.']) && found.strip_suffix(wanted).is_some_and(|front| front.ends_with('/')))
}
