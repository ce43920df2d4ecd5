//! Input of planning.

use std::path::Path;
use std::sync::Arc;

use model::{Diagnostic, Suite};

use super::settings::Settings;
use crate::select::Selection;

/// Input of planning.
pub struct PlanRequest<'a> {
    /// The loaded suites.
    pub suites: &'a [Suite],
    /// The run's settings.
    pub settings: &'a Settings,
    /// The selection of cases.
    pub selection: &'a Selection,
    /// The user's working directory; messages about code show paths relative to it.
    pub cwd: &'a Path,
    /// Reads the file of a scripted model. Planning itself does not depend on any file format.
    pub read_script: ReadScript,
    /// Test modules that were read with the suites, so that no trial reads them again.
    pub modules: script::Library,
}

/// Function that reads the file of a scripted model.
pub type ReadScript = Arc<dyn Fn(&Path) -> Result<llm::Script, Vec<Diagnostic>> + Send + Sync>;
