//! Makes the skill under test visible to the agent without exposing other settings.
//!
//! The CLI finds skills in its setting sources, and by default (hermetic) it has none. So the skill, which is
//! installed below the working directory, is also linked from the sandbox's own configuration folder, which is read as
//! the `user` source. If the real configuration folder is used instead, the skill is provided as a separate plug-in.

use std::io;
use std::path::{Path, PathBuf};

use model::SettingSource;
use serde_json::json;

use crate::program::link;

/// Folder for skills, relative to the agent's working directory and to its home.
pub(super) const SKILLS: &str = ".claude/skills";

/// Folder for definitions of sub-agents.
pub(super) const SUB_AGENTS: &str = ".claude/agents";

/// Folder for a whole plug-in, relative to the agent's working directory.
pub(super) const PLUGINS: &str = ".claude/plugins";

/// Parent folder of both.
const CLAUDE: &str = ".claude";

/// How the skill is made visible to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Exposure {
    /// There is no skill, or the agent finds it where it is installed.
    Nothing,
    /// A link in the sandbox's configuration folder.
    Home {
        /// Path of the installed skill, below the working directory.
        installed: String,
    },
    /// A plug-in created for the skill.
    Plugin {
        /// Path of the installed skill, below the working directory.
        installed: String,
    },
}

/// Returns how `installed` is made visible to an agent that reads `sources`.
pub(super) fn of(installed: Option<&str>, sources: &[SettingSource], real_folder: bool) -> Exposure {
    match installed {
        None => Exposure::Nothing,
        Some(_) if sources.contains(&SettingSource::Project) => Exposure::Nothing,
        Some(installed) if real_folder => Exposure::Plugin { installed: installed.to_owned() },
        Some(installed) => Exposure::Home { installed: installed.to_owned() },
    }
}

/// Returns the name of the installed skill or sub-agent.
fn name_of(installed: &str) -> &str {
    let entry = installed.rsplit('/').next().unwrap_or(installed);
    entry.strip_suffix(".md").unwrap_or(entry)
}

impl Exposure {
    /// Returns `true` if the agent must read the `user` source, which belongs to the sandbox.
    pub(super) fn needs_user_source(&self) -> bool {
        matches!(self, Self::Home { .. })
    }

    /// Returns the folder of the plug-in.
    pub(super) fn plugin(&self, home: &Path) -> Option<PathBuf> {
        self.in_plugin().map(|name| home.join(".skill-under-test").join(name))
    }

    /// Returns the name of a skill that is provided as a plug-in.
    pub(super) fn in_plugin(&self) -> Option<&str> {
        match self {
            Self::Plugin { installed } => Some(name_of(installed)),
            Self::Nothing | Self::Home { .. } => None,
        }
    }

    /// Creates the links. Existing links are kept.
    pub(super) fn lay_out(&self, home: &Path, work: &Path) -> io::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Home { installed } => link(&work.join(installed), &home.join(installed)),
            Self::Plugin { installed } => {
                let plugin = home.join(".skill-under-test").join(name_of(installed));
                let manifest = plugin.join(".claude-plugin");
                std::fs::create_dir_all(&manifest)?;
                std::fs::write(manifest.join("plugin.json"), json!({"name": name_of(installed)}).to_string())?;
                let below = Path::new(installed).strip_prefix(CLAUDE).unwrap_or(Path::new(installed));
                link(&work.join(installed), &plugin.join(below))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_exposed_in_exactly_one_way() {
        use SettingSource::{Local, Project, User};
        let installed = ".claude/skills/s";
        let home = Exposure::Home { installed: installed.into() };
        let plugin = Exposure::Plugin { installed: installed.into() };
        assert_eq!(of(Some(installed), &[], false), home);
        assert_eq!(of(Some(installed), &[Local], false), home);
        assert_eq!(of(Some(installed), &[], true), plugin);
        assert_eq!(of(Some(installed), &[User], true), plugin);
        assert_eq!(of(Some(installed), &[User, Project], true), Exposure::Nothing);
        assert_eq!(of(None, &[], true), Exposure::Nothing);
    }

    #[test]
    fn both_links_point_to_the_installed_skill() {
        let dir = tempfile::tempdir().unwrap();
        let (home, work) = (dir.path().join("home"), dir.path().join("work"));
        for (folder, entry, file) in [(SKILLS, "s", "s/SKILL.md"), (SUB_AGENTS, "r.md", "r.md")] {
            let path = work.join(folder).join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "text").unwrap();
            let installed = format!("{folder}/{entry}");
            for exposure in [Exposure::Home { installed: installed.clone() }, Exposure::Plugin { installed }] {
                exposure.lay_out(&home, &work).unwrap();
                exposure.lay_out(&home, &work).unwrap();
                let below = folder.strip_prefix(".claude/").unwrap();
                let shown = exposure.plugin(&home).map_or(home.join(folder), |plugin| plugin.join(below));
                assert_eq!(std::fs::read_to_string(shown.join(file)).unwrap(), "text");
            }
        }
    }
}
