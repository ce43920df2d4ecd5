//! Git's configuration files, as an agent may have written them.

/// Keys that neither run a program nor read another file, by section, in lower case.
const HARMLESS: [(&str, &[&str]); 8] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "bare",
            "filemode",
            "symlinks",
            "ignorecase",
            "precomposeunicode",
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
            "logallrefupdates",
            "sparsecheckout",
            "sparsecheckoutcone",
        ],
    ),
    ("extensions", &["objectformat", "refstorage", "partialclone"]),
    ("remote", &["url", "pushurl", "fetch", "push", "tagopt", "mirror", "promisor", "partialclonefilter"]),
    ("branch", &["remote", "pushremote", "merge", "rebase", "description"]),
    ("user", &["name", "email"]),
    ("push", &["default"]),
    ("pull", &["rebase", "ff"]),
    ("submodule", &["url", "path", "active", "branch"]),
];

/// Returns a configuration without the settings that could run programs or read other files; `None` if it is not
/// written as git itself would write it.
pub(super) fn without_programs(config: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(config).ok()?;
    let mut kept = String::with_capacity(text.len());
    let mut harmless: Option<&[&str]> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        let is_kept = if let Some(header) = trimmed.strip_prefix('[') {
            let section = header.strip_suffix(']')?;
            let name = section.split([' ', '.', '"', '\t']).next().unwrap_or(section).to_ascii_lowercase();
            harmless = HARMLESS.iter().find(|(known, _)| *known == name).map(|(_, keys)| *keys);
            harmless.is_some()
        } else if trimmed.ends_with('\\') {
            return None;
        } else {
            let key = trimmed.split(['=', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
            harmless.is_some_and(|keys| keys.contains(&key.as_str()))
        };
        if is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    Some(kept.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_run_nothing_are_kept() {
        let config = "[core]\n\tbare = false\n\tfsmonitor = x\n\tsshCommand=x\n\tpager x\n[include]\n\tpath = x\n\
            [remote \"o\"]\n\turl = y\n\tuploadpack = z\n[Filter \"f\"]\n\tclean = z\n[alias]\n\tstatus = !x\n\
            [user]\n\tName = a\n";
        let kept = String::from_utf8(without_programs(config.as_bytes()).unwrap()).unwrap();
        assert_eq!(kept, "[core]\n\tbare = false\n[remote \"o\"]\n\turl = y\n[user]\n\tName = a\n");
        for odd in ["[include] path = x\n", "[core]\n\ta = b\\\n[include]\n", "[core\n"] {
            assert_eq!(without_programs(odd.as_bytes()), None, "{odd}");
        }
    }
}
