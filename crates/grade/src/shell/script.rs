//! Finds the scripts that decide the exit code of a command line.

use std::path::{Component, Path};

use super::invocation::{INTERPRETERS, code_of, next_program, plain_name};
use super::{MAX_DEPTH, outer_commands};

/// Programs that run the files in their arguments as tests.
const TEST_RUNNERS: [&str; 10] =
    ["pytest", "doctest", "prove", "bats", "jest", "vitest", "mocha", "rspec", "phpunit", "unittest"];

/// Programs that run what a file of the project says, and that file.
const RECIPES: [(&str, &str); 7] = [
    ("make", "Makefile"),
    ("gmake", "Makefile"),
    ("npm", "package.json"),
    ("pnpm", "package.json"),
    ("yarn", "package.json"),
    ("bun", "package.json"),
    ("just", "justfile"),
];

/// Parts of the names of scripts that check something.
const CHECKS: &str = "check verif valid test assert grade grading lint smoke accept compare expect";

/// Maximum number of scripts of a command line.
const MOST: usize = 50;

/// Files that a command line runs, by their paths below the directory in which it runs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ScriptFiles {
    /// ScriptFiles whose exit codes can decide that of the command line. Those whose output goes to another command or a
    /// file are not among them: what uses the output decides.
    pub run: Vec<String>,
    /// Files that say what else is run, such as `Makefile`.
    pub recipes: Vec<String>,
}

/// Returns the scripts that a command line runs. They need not exist.
pub fn scripts_of(line: &str) -> ScriptFiles {
    let mut scripts = ScriptFiles::default();
    scripts.add(line, "", 0);
    scripts
}

/// Returns the recipes that a project can have in its main folder.
pub fn recipes() -> Vec<String> {
    let mut names: Vec<String> = RECIPES.iter().map(|(_, name)| (*name).to_owned()).collect();
    names.dedup();
    names
}

/// Returns the scripts that are run by the script or recipe at `path`, whose content is `text`, and the recipes that it
/// includes. Scripts without the name of a check may be what is tested.
pub fn scripts_in(path: &str, text: &str) -> ScriptFiles {
    let mut scripts = ScriptFiles::default();
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(manifest) => {
            let commands = manifest["scripts"].as_object().into_iter().flat_map(|scripts| scripts.values());
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            commands.filter_map(|line| line.as_str()).for_each(|line| scripts.add(line, folder, 0));
        }
        Err(_) => {
            // A recipe runs in its own folder, and a script in that of its caller, which can be its own.
            let is_recipe = RECIPES.iter().any(|(_, name)| path.ends_with(name));
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let folders = if is_recipe { vec![folder] } else { vec!["", folder] };
            for line in text.lines() {
                let line = line.trim_start_matches([' ', '\t', '@', '-']);
                let prefixes = ["include ", "sinclude ", "include("];
                if let Some(included) = prefixes.into_iter().find_map(|prefix| line.strip_prefix(prefix)) {
                    let included = included
                        .split([' ', '\t', ')'])
                        .filter(|name| !name.is_empty())
                        .filter_map(|name| below(folder, name));
                    scripts.recipes.extend(included.take(MOST));
                    continue;
                }
                folders.iter().for_each(|folder| scripts.add(line, folder, 0));
            }
        }
    }
    scripts
}

/// Returns `true` if the name of a file says that it checks something.
pub fn is_check(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    CHECKS.split(' ').any(|part| name.contains(part))
}

impl ScriptFiles {
    /// Adds what `line` runs in `folder`.
    fn add(&mut self, line: &str, folder: &str, depth: usize) {
        let mut folder = folder.to_owned();
        for simple in outer_commands(line) {
            if let [program, to] = &simple.words[..]
                && program == "cd"
            {
                folder = below(&folder, to).unwrap_or(folder);
            } else if !simple.hands_on {
                self.add_command(&simple.words, &folder, depth);
            }
        }
    }

    fn add_command(&mut self, words: &[String], folder: &str, depth: usize) {
        let mut words = words;
        // The first word is a program on the `PATH`, unless it has a folder.
        let mut is_operand = false;
        for _ in 0..MAX_DEPTH {
            let skipped = words.iter().take_while(|word| super::invocation::is_before_command(word)).count();
            let Some((program, rest)) = words[skipped..].split_first() else { return };
            if is_operand || program.contains('/') {
                self.push(program, folder);
            }
            let name = plain_name(program);
            if let Some(code) = code_of(name, rest).filter(|_| depth < MAX_DEPTH) {
                return self.add(&code, folder, depth + 1);
            }
            if TEST_RUNNERS.contains(&name) {
                rest.iter().filter(|word| !word.starts_with('-')).for_each(|word| self.push(word, folder));
            }
            if let Some((_, recipe)) = RECIPES.iter().find(|(known, _)| *known == name) {
                let after = |option: &str| rest.iter().skip_while(|word| *word != option).nth(1).map(String::as_str);
                let within = ["-C", "--prefix", "--cwd"].into_iter().find_map(after).unwrap_or_default();
                let recipe = below(folder, within).and_then(|within| below(&within, after("-f").unwrap_or(recipe)));
                self.recipes.extend(recipe.filter(|recipe| !self.recipes.contains(recipe)));
            }
            if matches!(name, "." | "source") {
                return rest.iter().take(1).for_each(|word| self.push(word, folder));
            }
            is_operand = INTERPRETERS.contains(&name);
            // Such as `node --import=./setup.js --test`.
            let values = rest.iter().filter_map(|word| Some(word.strip_prefix('-')?.split_once('=')?.1));
            values.filter(|_| is_operand).for_each(|value| self.push(value, folder));
            let module = rest.iter().skip_while(|word| *word != "-m").nth(1).filter(|_| name == "python");
            if let Some(module) = module.map(|module| module.replace('.', "/")) {
                self.push(&format!("{module}.py"), folder);
                self.push(&format!("{module}/__main__.py"), folder);
            }
            match next_program(name, rest) {
                Some(next) => words = next,
                None => return,
            }
        }
    }

    fn push(&mut self, word: &str, folder: &str) {
        let path = below(folder, word).filter(|path| !self.run.contains(path));
        self.run.extend(path.filter(|_| self.run.len() < MOST));
    }
}

/// Returns the path of `word` in `folder`, if it is not outside.
fn below(folder: &str, word: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in Path::new(word).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_where_their_exit_code_counts() {
        for (line, expected) in [
            ("sh scripts/verify.sh", vec!["scripts/verify.sh"]),
            ("cd web && ./run.sh --fast", vec!["web/run.sh"]),
            ("bash -lc 'cd a; sh \"b c.sh\"'", vec!["a/b c.sh"]),
            ("CI=1 timeout 20 python3 ./check.py x.txt", vec!["check.py"]),
            ("python3 -m doctest README.md", vec!["doctest.py", "doctest/__main__.py", "doctest", "README.md"]),
            ("python3 -m tools.check x", vec!["tools/check.py", "tools/check/__main__.py", "tools.check"]),
            ("pytest -q check_basket.py", vec!["check_basket.py"]),
            ("node --test && . ./env.sh", vec!["env.sh"]),
            ("if sh a.sh; then ./b/c; fi", vec!["a.sh", "b/c"]),
            ("node --import=./setup.js --test", vec!["setup.js"]),
            ("sh run.sh > /dev/null 2>&1", vec!["run.sh"]),
            ("test \"$(sh total.sh 2 3)\" = 5", vec![]),
            ("sh total.sh | grep -q 5", vec![]),
            ("python3 main.py > out.txt; diff out.txt expected.txt", vec![]),
            ("grep -q done out.txt; cat notes.md; echo sh x.sh", vec![]),
            ("/usr/bin/env sh ../x.sh", vec![]),
        ] {
            assert_eq!(scripts_of(line).run, expected, "{line}");
        }
        let recipes = scripts_of("cd web && npm test && make -f rules.mk && make -C sub all").recipes;
        assert_eq!(recipes, ["web/package.json", "web/rules.mk", "web/sub/Makefile"]);
    }

    #[test]
    fn recipes_and_scripts_name_further_scripts() {
        for (path, text, expected) in [
            ("Makefile", "test: all\n\t@sh scripts/verify.sh\n\t./main\n", vec!["scripts/verify.sh", "main"]),
            (
                "a/package.json",
                r#"{"scripts": {"test": "node check.js", "start": "node app.js"}}"#,
                vec!["a/check.js", "a/app.js"],
            ),
            (
                "run.sh",
                "#!/bin/sh\nset -e\npython3 tools/check.py \"$1\"\nsh build.sh\n",
                vec!["tools/check.py", "build.sh"],
            ),
            ("scripts/run.sh", "python3 check.py", vec!["check.py", "scripts/check.py"]),
            ("package.json", "[]", vec![]),
        ] {
            assert_eq!(scripts_in(path, text).run, expected, "{path}");
        }
        assert_eq!(scripts_in("Makefile", "-include a.mk b/c.mk\ntest:\n").recipes, ["a.mk", "b/c.mk"]);
        assert_eq!(scripts_in("a/CMakeLists.txt", "include(b.cmake OPTIONAL)\n").recipes[0], "a/b.cmake");
    }
}
