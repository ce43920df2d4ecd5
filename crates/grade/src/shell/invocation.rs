//! Finds the programs that a command runs indirectly: after `sudo`, inside `bash -c`, as a script.

use std::borrow::Cow;

use super::{MAX_DEPTH, commands_within};

/// Words that come before a command and are not commands.
const RESERVED: [&str; 12] = ["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}"];

/// Words that begin something other than a command, up to its end.
const HEADS: [&str; 4] = ["for", "case", "select", "function"];

/// Programs that run the command in their arguments: the name, the short options that have a value, and the number of
/// other arguments before the command.
const WRAPPERS: [(&str, &str, usize); 34] = [
    ("builtin", "", 0),
    ("bunx", "p", 0),
    ("busybox", "", 0),
    ("caffeinate", "tw", 0),
    ("chroot", "", 1),
    ("command", "", 0),
    ("doas", "Cu", 0),
    ("env", "CSu", 0),
    ("exec", "a", 0),
    ("faketime", "f", 1),
    ("flock", "Ew", 1),
    ("ionice", "Pcnpu", 0),
    ("nice", "n", 0),
    ("nohup", "", 0),
    ("npx", "p", 0),
    ("nsenter", "SGt", 0),
    ("parallel", "INajn", 0),
    ("pnpx", "", 0),
    ("runuser", "Ggu", 0),
    ("setsid", "", 0),
    ("stdbuf", "eio", 0),
    ("strace", "EPSabeopsu", 0),
    ("sudo", "CDRTUghprtu", 0),
    ("systemd-run", "ptu", 0),
    ("taskset", "", 1),
    ("time", "fo", 0),
    ("timeout", "ks", 1),
    ("torify", "", 0),
    ("unbuffer", "", 0),
    ("unshare", "GRSw", 0),
    ("uvx", "cpw", 0),
    ("watch", "dnq", 0),
    ("xargs", "EILPadns", 0),
    ("xvfb-run", "efnps", 0),
];

/// Long options of these programs that have a value, which may be the next word.
const WITH_VALUE: &str = "\
    --user --group --chdir --unset --signal --kill-after --adjustment --interval --max-args --max-procs --max-lines \
    --delimiter --package --from --with --python --setenv";

/// Options of `find` and `fd` before a command, which ends at `;` or `+`.
const RUN_ON_FILES: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Programs that run a command line with `-c`, anywhere in their arguments.
const WITH_CODE: [&str; 5] = ["su", "runuser", "script", "flock", "npx"];

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
        for simple in commands_within(&code, depth + 1) {
            unwrap(&simple.words, found, depth + 1);
        }
    } else if matches!(name, "find" | "fd" | "fdfind") {
        for command in rest.split(|word| RUN_ON_FILES.contains(&word.as_str())).skip(1) {
            let end = command.iter().position(|word| matches!(word.as_str(), ";" | "+")).unwrap_or(command.len());
            unwrap(&command[..end], found, depth + 1);
        }
    } else if let Some(next) = next_program(name, rest) {
        unwrap(next, found, depth + 1);
    }
}

/// Returns the part of `rest` that the program `name` runs.
pub(super) fn next_program<'w>(name: &str, rest: &'w [String]) -> Option<&'w [String]> {
    let is_option = |word: &String| word.starts_with('-');
    let is_run = |word: &String| word == "run" && matches!(name, "deno" | "bun");
    let from = if let Some((_, values, operands)) = WRAPPERS.iter().find(|(known, ..)| *known == name) {
        // `command -v git` does not run git.
        let is_question = |word: &String| matches!(word.as_str(), "-v" | "-V");
        if name == "command" && rest.first().is_some_and(is_question) {
            return None;
        }
        after_options(rest, values, *operands)?
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

/// Returns the index of the first word after options, assignments and the first `operands` other arguments. `values` are
/// the short options that have a value.
fn after_options(words: &[String], values: &str, mut operands: usize) -> Option<usize> {
    let has_value = |word: &str| match word.strip_prefix("--") {
        Some(_) => WITH_VALUE.split(' ').any(|option| option == word),
        // In `-nu bob`, the value is the next word; in `-ubob`, it is not.
        None => word.find(|letter| values.contains(letter)).is_some_and(|at| at + 1 == word.len()),
    };
    let mut index = 0;
    loop {
        let word = words.get(index)?;
        if word.starts_with('-') {
            index += usize::from(has_value(word));
        } else if !is_assignment(word) {
            match operands {
                0 => return Some(index),
                _ => operands -= 1,
            }
        }
        index += 1;
    }
}

/// Returns the command line that a program runs and that is one of its arguments, such as that of `bash -c`.
pub(super) fn code_of<'w>(name: &str, rest: &'w [String]) -> Option<Cow<'w, str>> {
    let is_code = |word: &String| {
        (word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'))
            || matches!(word.as_str(), "--command" | "--call")
    };
    let at = match name {
        "eval" => return Some(rest.join(" ").into()),
        "trap" => return rest.first().filter(|_| rest.len() > 1).map(|code| code.as_str().into()),
        _ if SHELLS.contains(&name) => rest.iter().take_while(|word| word.starts_with('-')).position(is_code)?,
        _ if WITH_CODE.contains(&name) => rest.iter().position(is_code)?,
        _ => return None,
    };
    rest.get(at + 1).map(|code| code.as_str().into())
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
