//! Hashes of everything on which the outcome of a trial depends.

use std::collections::BTreeMap;

use model::{RunInfo, TrialRecord};
use sha2::{Digest, Sha256};

/// Hashes of a run's test files, each with the files on which its cases depend, by path.
pub(crate) struct TestFiles(BTreeMap<String, String>);

impl TestFiles {
    pub(crate) fn of(info: &RunInfo) -> Self {
        let Some(invocation) = &info.invocation else { return Self(BTreeMap::new()) };
        let with_dependencies = |(file, hash): (&String, &String)| {
            let depends_on = invocation.dependencies.get(file).into_iter().flatten();
            let parts: Vec<_> = depends_on.map(|path| (path, invocation.suites.get(path))).collect();
            let hash = match parts.is_empty() {
                true => hash.clone(),
                false => model::text::hex(&Sha256::digest(serde_json::to_vec(&(hash, parts)).unwrap_or_default())),
            };
            (file.clone(), hash)
        };
        Self(invocation.suites.iter().map(with_dependencies).collect())
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(&self.0)
    }

    /// Reads the stored form.
    pub(crate) fn from_json(json: &str) -> Self {
        Self(serde_json::from_str(json).unwrap_or_default())
    }

    /// Returns the fingerprint of everything recorded on which a trial's outcome depends, apart from chance.
    pub(crate) fn fingerprint(&self, record: &TrialRecord) -> i64 {
        let file = record.file.as_ref().and_then(|file| self.0.get(&**file));
        let skill = record.skill.as_ref().map(|skill| &skill.content_hash);
        let parts = (&record.agent, &record.model, &record.variant, skill, &record.settings, &record.limits, file);
        let digest = Sha256::digest(serde_json::to_vec(&parts).unwrap_or_default());
        i64::from_be_bytes(digest[..8].try_into().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use model::{Event, Invocation};

    use super::*;
    use crate::tests::contract::RunBuilder;

    #[test]
    fn a_file_has_another_hash_if_one_of_its_dependencies_has() {
        let Event::RunStarted(mut info) = RunBuilder::of("run").started(&["a"]).event else { panic!() };
        let mut hash_of = |shared: &str| {
            let suites = [("a.yaml", "1"), ("b.yaml", "2"), ("shared.yaml", shared)];
            info.invocation = Some(Invocation {
                suites: suites.map(|(file, hash)| (file.to_owned(), hash.to_owned())).into(),
                dependencies: [("a.yaml".to_owned(), ["shared.yaml".to_owned()].into())].into(),
                ..Invocation::default()
            });
            let files = TestFiles::of(&info);
            (files.0["a.yaml"].clone(), files.0["b.yaml"].clone())
        };
        let (before, after) = (hash_of("3"), hash_of("4"));
        assert_ne!(before.0, after.0);
        assert_eq!((before.1.as_str(), after.1.as_str()), ("2", "2"));
    }
}
