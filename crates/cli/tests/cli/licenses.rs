//! `trialrun licenses` names every package in the lock file.

use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");
const LOCK_FILE: &str = include_str!("../../../../Cargo.lock");

#[test]
fn the_notices_name_every_package_of_the_lock_file() {
    let notices = Project::new(PROGRAM).run(&["licenses"]).exits(0).out;
    let mut packages = 0;
    for package in LOCK_FILE.split("[[package]]").filter(|package| package.contains("\nsource = ")) {
        let value = |key: &str| {
            package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
        };
        let (name, version) = (value("name").unwrap_or_default(), value("version").unwrap_or_default());
        let line = format!("\n{name} {version} (");
        assert!(notices.contains(&line), "{name} {version} is missing: run scripts/licenses");
        packages += 1;
    }
    assert!(packages > 100, "{packages}");
    for text in ["Permission is hereby granted", "Apache License", "Fabrice Bellard"] {
        assert!(notices.contains(text), "{text}");
    }
}
