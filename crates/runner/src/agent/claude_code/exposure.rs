//! How the agent is shown the skill under test, and nothing else of what lies about.
//!
//! The CLI finds skills where its setting sources are, and the hermetic default is to have none. So the skill, which is
//! installed below the working directory, gets a second door: a link in the sandbox's own configuration folder, read as
//! the `user` source. Where that folder is the real one, the skill comes as a plug-in of its own.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use model::SettingSource;
use serde_json::json;

/// The agent's folder for skills, below its working directory and below its home.
pub(super) const SKILLS: &str = ".claude/skills";

/// How the skill is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Exposure {
    /// There is none, or the agent finds it where it is installed.
    Nothing,
    /// By a link in the sandbox's configuration folder.
    Home {
        /// Its name.
        skill: String,
    },
    /// By a plug-in made for it.
    Plugin {
        /// Its name.
        skill: String,
    },
}

/// How `skill` is shown to an agent that reads `sources`.
pub(super) fn of(skill: Option<&str>, sources: &[SettingSource], real_folder: bool) -> Exposure {
    match skill {
        None => Exposure::Nothing,
        Some(_) if sources.contains(&SettingSource::Project) => Exposure::Nothing,
        Some(skill) if real_folder => Exposure::Plugin { skill: skill.to_owned() },
        Some(skill) => Exposure::Home { skill: skill.to_owned() },
    }
}

impl Exposure {
    /// Whether the agent must read the `user` source, which is the sandbox's own.
    pub(super) fn needs_user_source(&self) -> bool {
        matches!(self, Self::Home { .. })
    }

    /// The plug-in's folder.
    pub(super) fn plugin(&self, home: &Path) -> Option<PathBuf> {
        match self {
            Self::Plugin { skill } => Some(home.join(".skill-under-test").join(skill)),
            Self::Nothing | Self::Home { .. } => None,
        }
    }

    /// The name of the skill that comes in a plug-in.
    pub(super) fn in_plugin(&self) -> Option<&str> {
        match self {
            Self::Plugin { skill } => Some(skill),
            Self::Nothing | Self::Home { .. } => None,
        }
    }

    /// Makes the links. Those that are there already stay.
    pub(super) fn lay_out(&self, home: &Path, work: &Path) -> io::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Home { skill } => link(&home.join(SKILLS), skill, work),
            Self::Plugin { skill } => {
                let plugin = home.join(".skill-under-test").join(skill);
                let manifest = plugin.join(".claude-plugin");
                std::fs::create_dir_all(&manifest)?;
                std::fs::write(manifest.join("plugin.json"), json!({"name": skill}).to_string())?;
                link(&plugin.join("skills"), skill, work)
            }
        }
    }
}

fn link(folder: &Path, skill: &str, work: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    match symlink(work.join(SKILLS).join(skill), folder.join(skill)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_has_one_door_whatever_the_agent_reads() {
        use SettingSource::{Local, Project, User};
        let home = Exposure::Home { skill: "s".into() };
        let plugin = Exposure::Plugin { skill: "s".into() };
        assert_eq!(of(Some("s"), &[], false), home);
        assert_eq!(of(Some("s"), &[Local], false), home);
        assert_eq!(of(Some("s"), &[], true), plugin);
        assert_eq!(of(Some("s"), &[User], true), plugin);
        assert_eq!(of(Some("s"), &[User, Project], true), Exposure::Nothing);
        assert_eq!(of(None, &[], true), Exposure::Nothing);
    }

    #[test]
    fn both_doors_lead_to_the_installed_skill() {
        let dir = tempfile::tempdir().unwrap();
        let (home, work) = (dir.path().join("home"), dir.path().join("work"));
        std::fs::create_dir_all(work.join(SKILLS).join("s")).unwrap();
        std::fs::write(work.join(SKILLS).join("s/SKILL.md"), "text").unwrap();
        for exposure in [Exposure::Home { skill: "s".into() }, Exposure::Plugin { skill: "s".into() }] {
            exposure.lay_out(&home, &work).unwrap();
            exposure.lay_out(&home, &work).unwrap();
            let folder = exposure.plugin(&home).map_or(home.join(SKILLS), |plugin| plugin.join("skills"));
            assert_eq!(std::fs::read_to_string(folder.join("s/SKILL.md")).unwrap(), "text");
        }
    }
}
