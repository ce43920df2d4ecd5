//! What is known about a case while it is read.

use model::Node;
use model::decode::{Fields, Problems};

use crate::coverage::{KeyLog, Unknown};

/// A case while it is read.
pub(super) struct Reading<'k> {
    /// Keys that were read so far.
    pub(super) keys: &'k mut KeyLog,
    /// Reasons why the case cannot run although others can.
    pub(super) broken: Problems,
}

impl Reading<'_> {
    /// Records the keys of a map, see [`KeyLog::close`].
    pub(super) fn close(
        &mut self,
        fields: &Fields<'_>,
        path: &str,
        ignored: &[(&str, &str)],
        unknown: impl Fn(&str, &Node) -> Unknown,
        problems: &mut Problems,
    ) {
        let broken = self.keys.close(fields, path, ignored, unknown, problems);
        self.broken.extend(broken);
    }
}
