//! Commands of assertions that only read files of the agent. What they read is the work itself, whatever else the file
//! steers.

/// Programs that only print or compare what is in files. Those that only ask whether a file exists are not among them.
const READERS: &str = "grep egrep fgrep rg cat head tail jq yq diff cmp wc cut sort xmllint";

/// Characters outside of quotes with which a line is more than one command, or has parts that are not known.
const MORE: [char; 12] = [';', '&', '|', '<', '>', '(', ')', '$', '`', '*', '?', '\n'];

/// Returns the arguments of a command line that only reads files; `None` if it may do more.
pub(super) fn read_by(line: &str) -> Option<Vec<String>> {
    if is_composed(line) {
        return None;
    }
    let line = line.trim_start().strip_prefix("! ").unwrap_or(line);
    let words = shlex::split(line)?;
    let (program, arguments) = words.split_first()?;
    let is_reader = READERS.split(' ').any(|reader| reader == program);
    is_reader.then(|| arguments.iter().map(|word| word.strip_prefix("./").unwrap_or(word).to_owned()).collect())
}

/// Returns `true` if a line has operators or substitutions of a shell.
fn is_composed(line: &str) -> bool {
    let mut quote = None;
    line.chars().any(|letter| match (quote, letter) {
        (_, '\\') | (Some('"') | None, '$' | '`') => true,
        (None, '\'' | '"') => {
            quote = Some(letter);
            false
        }
        (Some(open), _) => {
            if open == letter {
                quote = None;
            }
            false
        }
        (None, _) => MORE.contains(&letter),
    })
}

#[cfg(test)]
mod tests {
    use super::read_by;

    #[test]
    fn a_command_that_only_reads_has_the_files_that_it_reads() {
        let files = |line: &str| read_by(line).map(|words| words.join(" "));
        assert_eq!(files("grep -q 22 ./.nvmrc").as_deref(), Some("-q 22 .nvmrc"));
        assert_eq!(files("! grep -q 18 .nvmrc").as_deref(), Some("-q 18 .nvmrc"));
        assert_eq!(
            files("jq -e '.scripts | .build' package.json").as_deref(),
            Some("-e .scripts | .build package.json")
        );
        for more in [
            "make test",
            "grep -q test Makefile && make test",
            "cat Makefile | make -f -",
            "grep \"$(make test)\" Makefile",
            "grep a *.mk",
            "test -f Makefile",
            "bin/grep a Makefile",
            "grep 'a",
            "",
        ] {
            assert_eq!(files(more), None, "{more}");
        }
    }
}
