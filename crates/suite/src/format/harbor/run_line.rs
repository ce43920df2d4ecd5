//! What a `RUN` line of a Dockerfile does, as far as that is known without running it.

/// Effect of a command of a `RUN` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// It changes nothing that a task sees.
    Nothing,
    /// It makes folders.
    Folders(Vec<String>),
    /// It sets the mode of files: the mode, and their paths.
    Mode(String, Vec<String>),
    /// It installs programs, or changes the system in another way.
    Installs,
    /// It may change files of the task.
    Unknown,
}

/// Commands that change nothing that a task sees, as all processes have the same user.
const HARMLESS: [&str; 7] = ["true", ":", "set", "chown", "chgrp", "echo", "umask"];

/// Commands that install programs or change the system, with the words of which one must follow.
const INSTALLERS: [(&str, &[&str]); 20] = [
    ("apt-get", &[]),
    ("apt", &[]),
    ("apk", &[]),
    ("yum", &[]),
    ("dnf", &[]),
    ("microdnf", &[]),
    ("dpkg", &[]),
    ("add-apt-repository", &[]),
    ("useradd", &[]),
    ("adduser", &[]),
    ("groupadd", &[]),
    ("addgroup", &[]),
    ("usermod", &[]),
    ("update-alternatives", &[]),
    ("locale-gen", &[]),
    ("pip", &["install"]),
    ("pip3", &["install"]),
    ("gem", &["install"]),
    ("npm", &["-g", "--global"]),
    ("corepack", &["enable"]),
];

/// Arguments of an installer that make it write into the working directory.
const INTO_FOLDER: [&str; 6] = ["-e", "--editable", "-t", "--target", "--prefix", "."];

/// Words with which parts of compound commands begin.
const COMPOUND: [&str; 9] = ["if", "then", "else", "for", "while", "until", "do", "case", "{"];

/// Returns the effects of the commands of a `RUN` line, with the text of each. A line with a compound command is one of
/// unknown effect.
pub(super) fn effects(line: &str) -> Vec<(String, Effect)> {
    let commands = commands(line);
    let is_part = |command: &String| command.split_whitespace().next().is_some_and(|word| COMPOUND.contains(&word));
    if commands.iter().any(is_part) {
        return vec![(line.split_whitespace().collect::<Vec<_>>().join(" "), Effect::Unknown)];
    }
    commands.into_iter().map(|command| (command.clone(), effect(&command))).collect()
}

fn effect(command: &str) -> Effect {
    let Some(words) = words(command) else {
        // A program from the network that a shell runs is an installer.
        let is_piped = command.starts_with("curl ") || command.starts_with("wget ");
        let shell = command.rsplit('|').next().and_then(|last| last.split_whitespace().next());
        let is_installer = is_piped && matches!(shell, Some("sh" | "bash")) && !command.contains('>');
        return if is_installer { Effect::Installs } else { Effect::Unknown };
    };
    let mut rest = words.iter().map(String::as_str).skip_while(|word| is_assignment(word) || *word == "sudo");
    let Some(program) = rest.next() else { return Effect::Nothing };
    let arguments: Vec<&str> = rest.collect();
    let operands = || arguments.iter().filter(|word| !word.starts_with('-')).map(|word| (*word).to_owned());
    if let ("python" | "python3", ["-m", "pip", "install", others @ ..]) = (program, arguments.as_slice()) {
        return installs(others);
    }
    if let ("uv", ["pip", "install", others @ ..]) = (program, arguments.as_slice()) {
        return if others.contains(&"--system") { installs(others) } else { Effect::Unknown };
    }
    match program {
        "mkdir" => Effect::Folders(operands().collect()),
        "chmod" => {
            let mut operands = operands();
            operands.next().map_or(Effect::Unknown, |mode| Effect::Mode(mode, operands.collect()))
        }
        "rm" if operands().all(|path| is_of_system(&path)) => Effect::Installs,
        "ln" if operands().next_back().is_some_and(|path| is_of_system(&path)) => Effect::Installs,
        _ if HARMLESS.contains(&program) => Effect::Nothing,
        _ => match INSTALLERS.iter().find(|(name, _)| *name == program) {
            Some((_, needed)) if needed.is_empty() || needed.iter().any(|word| arguments.contains(word)) => {
                installs(&arguments)
            }
            _ => Effect::Unknown,
        },
    }
}

fn installs(arguments: &[&str]) -> Effect {
    let into_folder = arguments.iter().any(|word| INTO_FOLDER.contains(word) || word.starts_with("--target="));
    if into_folder { Effect::Unknown } else { Effect::Installs }
}

/// Folders of the system, which only an image has.
const SYSTEM: [&str; 17] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/run", "/sbin", "/srv",
    "/sys", "/tmp", "/usr", "/var",
];

/// Returns `true` if an absolute path without `..` is in a folder of the system, or is the root or a home.
pub(super) fn is_of_system(path: &str) -> bool {
    let is_below =
        |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    SYSTEM.iter().any(|folder| is_below(folder)) || matches!(path, "/" | "/root" | "/home" | "/nix" | "/gnu")
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

/// Splits a line at `&&`, `;` and line ends that are not in quotes.
fn commands(line: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let (mut quote, mut letters) = (None, line.chars().peekable());
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, ';' | '\n') => found.push(String::new()),
            (None, '&') if letters.peek() == Some(&'&') => {
                letters.next();
                found.push(String::new());
            }
            (_, letter) => {
                match quote {
                    None if matches!(letter, '"' | '\'') => quote = Some(letter),
                    Some(open) if open == letter => quote = None,
                    _ => {}
                }
                found.last_mut().into_iter().for_each(|command| command.push(letter));
            }
        }
    }
    found.iter().map(|command| command.trim().to_owned()).filter(|command| !command.is_empty()).collect()
}

/// Returns the words of a command without quotes; `None` if the shell does more than to split it.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match (quote, letter) {
            (_, '$' | '`' | '\\') if quote != Some('\'') => return None,
            (None, '|' | '&' | '>' | '<' | '(' | ')' | '{' | '}') => return None,
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), letter) if open == letter => quote = None,
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_of_a_line_is_known_or_refused() {
        let folders = |paths: &[&str]| Effect::Folders(paths.iter().map(|path| (*path).to_owned()).collect());
        for (line, expected) in [
            ("mkdir -p /app/out data", vec![folders(&["/app/out", "data"])]),
            (
                "set -eux; apt-get update && apt-get install -y git",
                vec![Effect::Nothing, Effect::Installs, Effect::Installs],
            ),
            ("DEBIAN_FRONTEND=noninteractive apt-get install -y jq", vec![Effect::Installs]),
            ("rm -rf /var/lib/apt/lists/*", vec![Effect::Installs]),
            ("rm -rf /app/cache", vec![Effect::Unknown]),
            ("pip install --no-cache-dir pytest==8.4.1", vec![Effect::Installs]),
            ("python3 -m pip install numpy", vec![Effect::Installs]),
            ("pip install -e .", vec![Effect::Unknown]),
            ("pip download x", vec![Effect::Unknown]),
            ("npm install -g typescript", vec![Effect::Installs]),
            ("npm install", vec![Effect::Unknown]),
            ("curl -LsSf https://example.com/install.sh | sh", vec![Effect::Installs]),
            ("curl -o /app/data.csv https://example.com/data.csv", vec![Effect::Unknown]),
            ("git init && git add .", vec![Effect::Unknown, Effect::Unknown]),
            ("echo hello > /app/a.txt", vec![Effect::Unknown]),
            ("echo 'a && b'", vec![Effect::Nothing]),
            ("chmod +x /app/run.sh", vec![Effect::Mode("+x".into(), vec!["/app/run.sh".into()])]),
            ("chown -R agent:agent /app", vec![Effect::Nothing]),
            ("echo \"unclosed", vec![Effect::Unknown]),
            ("mkdir $HOME/x", vec![Effect::Unknown]),
            ("if [ -d a ]; then mkdir b && rm a; fi && apt-get update", vec![Effect::Unknown]),
            ("for name in a b; do mkdir $name; done", vec![Effect::Unknown]),
        ] {
            let found: Vec<Effect> = effects(line).into_iter().map(|(_, effect)| effect).collect();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn folders_of_the_system_are_known() {
        for (path, expected) in [
            ("/usr/local/bin", true),
            ("/etc", true),
            ("/", true),
            ("/root", true),
            ("/root/x", false),
            ("/app", false),
        ] {
            assert_eq!(is_of_system(path), expected, "{path}");
        }
        assert!(!is_of_system("/library") && !is_of_system("data"));
    }
}
