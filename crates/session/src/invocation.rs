//! The command that started a run, as recorded for `run --resume`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use model::Invocation;
use runner::{Plan, first_of_each_case};
use sha2::{Digest, Sha256};

use crate::dependencies;
use crate::path::{normalize, shown};
use crate::session::Session;

/// Returns the command with these `arguments`, with the files that decide what the trials of `plan` do. `None` if it
/// cannot be recorded.
pub fn invocation(arguments: Vec<String>, plan: &Plan, session: &Session) -> Option<Invocation> {
    let cwd = &session.cwd;
    let of_suites = dependencies::of_suites(session, &plan.trials);
    let written: BTreeSet<(&Path, &str)> =
        first_of_each_case(&plan.trials).map(|trial| (&*trial.file, &*trial.case.source.file)).collect();
    let mut hashes: BTreeMap<PathBuf, Option<String>> = BTreeMap::new();
    let mut invocation = Invocation { arguments, directory: cwd.to_str()?.to_owned(), ..Invocation::default() };
    for (suite, file) in written {
        let place = normalize(&cwd.join(file));
        // Folders are not hashed: they may be large, and those of skills have a hash of their own.
        let paths = of_suites.get(suite).into_iter().flat_map(|suite| suite.paths());
        for path in paths.chain([&place]) {
            let hash = hashes.entry(path.clone()).or_insert_with(|| hash_of(path));
            let Some(hash) = hash.clone() else { continue };
            let name = if *path == place { file.to_owned() } else { shown(path, cwd) };
            if *path != place {
                invocation.dependencies.entry(file.to_owned()).or_default().insert(name.clone());
            }
            invocation.suites.insert(name, hash);
        }
    }
    Some(invocation)
}

/// Returns the SHA-256 of a regular file of at most 1 GiB; `None` if it cannot be read.
pub fn hash_of(file: &Path) -> Option<String> {
    let content = files::read_named(file, 1 << 30).ok()?;
    Some(model::text::hex(&Sha256::digest(content)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overrides::Overrides;
    use crate::tests::session_in;

    #[test]
    fn a_run_records_the_files_on_which_its_cases_depend() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("lib")).unwrap();
        for (file, text) in [
            ("trialrun.yaml", "state: state\n"),
            ("tsconfig.json", "{\"compilerOptions\": {\"paths\": {\"@/*\": [\"./lib/*\"]}}}\n"),
            ("a.fixture.ts", "import { cases } from '@/cases.ts';\nexport default cases;\n"),
            (
                "lib/cases.ts",
                "import text from './text.json';\nexport const cases = [{ input: text.a, output: 'b' }];\n",
            ),
            ("lib/text.json", "{\"a\": \"b\"}\n"),
            ("_fixtures.yaml", "blocks: {}\n"),
            ("b.yaml", "scenario: b\nsystem_prompt: x\nuser_prompt: '{{ says }}'\ncases: rows.csv\n"),
            ("rows.csv", "name,says\nfirst,go\n"),
        ] {
            std::fs::write(root.join(file), text).unwrap();
        }
        let mut args = Overrides { targets: vec![root.display().to_string()], ..Overrides::default() };
        args.arms.agent = vec!["fake".into()];
        let session = session_in(&root);
        let planned = session.plan(&session.resolve(&args).unwrap()).unwrap();
        let recorded = invocation(Vec::new(), &planned.plan, &session).unwrap();
        let short = |path: &String| {
            path.rsplit_once(&format!("{}/", root.display())).map_or(path.clone(), |(_, name)| name.to_owned())
        };
        let dependencies: Vec<(String, Vec<String>)> = recorded
            .dependencies
            .iter()
            .map(|(file, depends_on)| (short(file), depends_on.iter().map(short).collect()))
            .collect();
        let expected = [
            ("a.fixture.ts", vec!["_fixtures.yaml", "lib/cases.ts", "lib/text.json"]),
            ("b.yaml", vec!["_fixtures.yaml", "rows.csv"]),
        ];
        assert_eq!(
            dependencies,
            expected.map(|(file, files)| (file.to_owned(), files.iter().map(|file| (*file).to_owned()).collect()))
        );
        assert!(recorded.dependencies.values().flatten().all(|file| recorded.suites.contains_key(file)));
    }
}
