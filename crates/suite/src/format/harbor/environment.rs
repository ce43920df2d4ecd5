//! The environment of a task, from its Dockerfile: the files that it copies, and where they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;
use model::{CopyTree, Diagnostic, Excerpt, FixtureFile, OuterFolder, Source, nearest};

use super::dockerfile::{Instruction, instructions, substituted, words};
use super::reading::Reading;
use super::run_line::{Effect, effects, is_of_system};
use crate::coverage::Treatment;
use crate::{fixtures, path};

/// What a task's processes find.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// Absolute path of the working directory.
    pub(super) workdir: Option<String>,
    /// Variables.
    pub(super) env: Vec<(String, String)>,
    /// Trees and files in the working directory, by paths relative to it.
    pub(super) trees: Vec<CopyTree>,
    pub(super) files: Vec<FixtureFile>,
    /// Empty folders in the working directory.
    pub(super) directories: Vec<String>,
    /// Folders outside of the working directory.
    pub(super) outside: Vec<OuterFolder>,
}

/// Something that an instruction puts at an absolute path.
struct Placed {
    path: String,
    content: Content,
    place: Excerpt,
}

enum Content {
    Tree(PathBuf),
    File {
        content: Arc<[u8]>,
        executable: bool,
    },
    Folder,
    /// Makes the file or all files of the folder executable.
    Executable,
}

/// State of an image while it is read.
#[derive(Default)]
struct Image {
    workdir: Option<String>,
    env: Vec<(String, String)>,
    /// Values of `ARG` and `ENV`, for other instructions.
    variables: Vec<(String, String)>,
    placed: Vec<Placed>,
}

/// Instructions that change nothing that a task sees.
const IGNORED: [(&str, &str); 10] = [
    ("LABEL", "it describes the image"),
    ("MAINTAINER", "it describes the image"),
    ("EXPOSE", "no port is published there either"),
    ("VOLUME", "the folder is part of the sandbox"),
    ("STOPSIGNAL", "all processes are ended in the same way"),
    ("SHELL", "no command of the image is run"),
    ("CMD", "harbor does not run it either"),
    ("HEALTHCHECK", "it changes nothing that the agent finds"),
    ("USER", "all processes run as the user of trialrun"),
    ("FROM", "`isolated` sandboxes have the programs of this machine, and `docker` and `podman` those of their image"),
];

impl Reading<'_> {
    /// Reads the Dockerfile `source`, whose files are in `context`. `chosen` is the working directory in `task.toml`.
    pub(super) fn environment(&mut self, source: &Arc<Source>, context: &Path, chosen: Option<String>) -> Environment {
        let instructions = instructions(source);
        let mut image = Image::default();
        let stages = instructions.iter().filter(|one| one.name == "FROM").count();
        // A misspelt instruction is reported as such.
        if stages == 0 && !instructions.iter().any(|one| nearest(&one.name, ["FROM"]).is_some()) {
            let place = Excerpt::of_file(Arc::clone(&source.path));
            self.found.push(Diagnostic::error("the Dockerfile has no `FROM`").at(place));
        }
        for (at, one) in instructions.iter().enumerate() {
            if one.name == "FROM" && at > 0 && instructions[..at].iter().any(|one| one.name == "FROM") {
                self.refuse_at("FROM", one.place.clone(), "images that are built in several stages are not read");
                continue;
            }
            self.instruction(one, context, &mut image);
        }
        if let Some(chosen) = chosen {
            image.workdir = Some(chosen);
        }
        self.laid_out(image, Excerpt::of_file(Arc::clone(&source.path)))
    }

    fn instruction(&mut self, one: &Instruction, context: &Path, image: &mut Image) {
        if one.has_document && one.name != "RUN" {
            return self.refuse_at(&one.name, one.place.clone(), "a file in the Dockerfile itself is not read");
        }
        let honour = |reading: &mut Self| {
            reading.keys.add(one.name.clone(), Treatment::Honoured, None, one.place.clone());
        };
        match one.name.as_str() {
            "WORKDIR" => {
                honour(self);
                if let Some(text) = self.filled(one, &one.text, image) {
                    let text = words(&text).join(" ");
                    image.workdir = self.absolute(&text, image, &one.place);
                }
            }
            "ENV" => {
                honour(self);
                self.variables_of(one, image);
            }
            "ARG" => {
                honour(self);
                for word in words(&one.text) {
                    if let Some((name, value)) = word.split_once('=') {
                        image.variables.push((name.to_owned(), value.to_owned()));
                    }
                }
            }
            "COPY" | "ADD" => {
                honour(self);
                self.copy(one, context, image);
            }
            "RUN" => self.run(one, image),
            "ENTRYPOINT" => {
                self.refuse_at("ENTRYPOINT", one.place.clone(), "a program that runs beside the agent is not started");
            }
            name => match IGNORED.iter().find(|(known, _)| *known == name) {
                Some((_, consequence)) => self.ignore(name, one.place.clone(), consequence),
                None => self.refuse_at(name, one.place.clone(), "trialrun does not know this instruction"),
            },
        }
    }

    /// Replaces the variables in `text`. If one is not known, only an image has it.
    fn filled(&mut self, one: &Instruction, text: &str, image: &Image) -> Option<String> {
        match substituted(text, &image.variables) {
            Ok(text) => Some(text),
            Err(name) => {
                let reason = format!("`{}` uses `{name}`, which only the image sets", one.name);
                self.need_image(&one.name, one.place.clone(), &reason);
                None
            }
        }
    }

    fn variables_of(&mut self, one: &Instruction, image: &mut Image) {
        let is_pair = |word: &String| word.split_once('=').is_some_and(|(name, _)| !name.is_empty());
        let words = words(&one.text);
        let pairs: Vec<(String, String)> = match words.iter().all(is_pair) {
            true => words
                .iter()
                .filter_map(|word| word.split_once('='))
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
                .collect(),
            // The old form has one variable: `ENV NAME the rest of the line`.
            false => {
                let (name, value) = one.text.split_once(char::is_whitespace).unwrap_or((&one.text, ""));
                vec![(name.to_owned(), value.trim().to_owned())]
            }
        };
        for (name, value) in pairs {
            if name == "PATH" {
                let reason = "`ENV PATH` names folders of the image";
                self.need_image("ENV", one.place.clone(), reason);
                continue;
            }
            let Some(value) = self.filled(one, &value, image) else { continue };
            image.variables.push((name.clone(), value.clone()));
            image.env.retain(|(known, _)| *known != name);
            image.env.push((name, value));
        }
    }

    /// Returns an absolute path without `..`; relative ones begin in the working directory.
    fn absolute(&mut self, written: &str, image: &Image, place: &Excerpt) -> Option<String> {
        let base = image.workdir.as_deref().unwrap_or("/");
        let resolved = path::resolve(Path::new(base), written);
        match resolved.to_str().filter(|text| text.starts_with('/') && !text.contains('\0')) {
            Some(text) => Some(text.to_owned()),
            None => {
                let problem = Diagnostic::error(format!("`{written}` is not a path in the image"));
                self.found.push(problem.at(place.clone()));
                None
            }
        }
    }

    fn copy(&mut self, one: &Instruction, context: &Path, image: &mut Image) {
        let place = &one.place;
        let (options, _) = one.options();
        let mut mode = None;
        for (name, value) in options {
            match name {
                "chown" | "link" => {}
                "chmod" => mode = Some(value.to_owned()),
                "from" => {
                    return self.refuse_at(
                        &format!("{} --from", one.name),
                        place.clone(),
                        "files of other images are not copied",
                    );
                }
                other => {
                    return self.refuse_at(
                        &format!("{} --{other}", one.name),
                        place.clone(),
                        "trialrun does not know this option",
                    );
                }
            }
        }
        let mut operands = Vec::new();
        for operand in one.operands() {
            let Some(operand) = self.filled(one, &operand, image) else { return };
            operands.push(operand);
        }
        let Some(to) = operands.pop().filter(|_| !operands.is_empty()) else {
            let problem = Diagnostic::error(format!("`{}` has no source and target", one.name));
            return self.found.push(problem.at(place.clone()));
        };
        let Some(target) = self.absolute(&to, image, place) else { return };
        let mut sources = Vec::new();
        for operand in &operands {
            if one.name == "ADD" && (operand.contains("://") || is_archive(operand)) {
                return self.refuse_at("ADD", place.clone(), "archives and files of other machines are not unpacked");
            }
            let found = matches(context, operand);
            if found.is_empty() {
                let shown = self.library.shown(context);
                let problem = Diagnostic::error(format!("`{operand}` does not exist in `{shown}`"));
                self.found.push(problem.at(place.clone()));
            }
            sources.extend(found);
        }
        let is_folder = to.ends_with('/') || to == "." || to.ends_with("/.") || sources.len() > 1;
        for source in sources {
            let name = source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let (path, content) = match source.is_dir() {
                // The contents of a folder are merged into the target.
                true => (target.clone(), Content::Tree(source)),
                false => match fixtures::bytes(&source) {
                    Ok((content, executable)) => {
                        let path = if is_folder { joined(&target, name) } else { target.clone() };
                        (path, Content::File { content: content.into(), executable })
                    }
                    Err(error) => {
                        let message = format!("cannot read `{}`: {error}", self.library.shown(&source));
                        self.found.push(Diagnostic::error(message).at(place.clone()));
                        continue;
                    }
                },
            };
            image.placed.push(Placed { path: path.clone(), content, place: place.clone() });
            if let Some(mode) = &mode {
                self.mode(one, mode, path, image);
            }
        }
    }

    /// Sets the mode of the file or folder at `path`.
    fn mode(&mut self, one: &Instruction, mode: &str, path: String, image: &mut Image) {
        if makes_executable(mode) {
            image.placed.push(Placed { path, content: Content::Executable, place: one.place.clone() });
        } else {
            let consequence = "all processes have the same user, who can read and write all files";
            self.ignore("chmod", one.place.clone(), consequence);
        }
    }

    fn run(&mut self, one: &Instruction, image: &mut Image) {
        let (_, text) = one.options();
        if one.has_document || text.starts_with('[') {
            return self.refuse_run(one, text);
        }
        // The first of each kind is enough: the line is one instruction.
        let (mut unknown, mut installer) = (None, None);
        for (command, effect) in effects(text) {
            match effect {
                Effect::Nothing => {}
                Effect::Folders(paths) => {
                    for written in paths {
                        let Some(path) = self.absolute(&written, image, &one.place) else { continue };
                        image.placed.push(Placed { path, content: Content::Folder, place: one.place.clone() });
                    }
                }
                Effect::Mode(mode, paths) => {
                    for written in paths {
                        let Some(path) = self.absolute(&written, image, &one.place) else { continue };
                        self.mode(one, &mode, path, image);
                    }
                }
                Effect::Installs => installer = installer.or(Some(command)),
                Effect::Unknown => unknown = unknown.or(Some(command)),
            }
        }
        match (unknown, installer) {
            (Some(command), _) => self.refuse_run(one, &command),
            (None, Some(command)) => {
                let command = model::text::shortened(&command, 80);
                let reason = format!("`RUN` installs programs or changes the system: `{command}`");
                self.need_image("RUN", one.place.clone(), &reason);
            }
            (None, None) => self.keys.add("RUN".to_owned(), Treatment::Honoured, None, one.place.clone()),
        }
    }

    fn refuse_run(&mut self, one: &Instruction, command: &str) {
        let command = model::text::shortened(command.trim(), 80);
        let consequence = format!("no image is built, so the files that `{command}` makes or changes are missing");
        self.refuse_at("RUN", one.place.clone(), &consequence);
    }

    /// Distributes what the instructions put somewhere to the working directory and to folders outside of it.
    fn laid_out(&mut self, image: Image, file: Excerpt) -> Environment {
        let Image { workdir, env, placed, .. } = image;
        let mut made = Environment { env, ..Environment::default() };
        match workdir.as_deref() {
            Some("/") => self.refuse_at("WORKDIR", file, "the root of the image cannot be the working directory"),
            Some(path) if is_of_system(path) => {
                let reason = format!("the working directory `{path}` is in a folder of the system");
                self.need_image("WORKDIR", file, &reason);
            }
            _ => {}
        }
        for Placed { path, content, place } in placed {
            if let Some(to) = workdir.as_deref().and_then(|workdir| below(&path, workdir)) {
                let Environment { directories, trees, files, .. } = &mut made;
                self.put(content, to, place, &mut Layout { directories, trees, files });
                continue;
            }
            let is_above = workdir.as_deref().is_some_and(|workdir| below(workdir, &path).is_some());
            if is_above {
                if !matches!(content, Content::Folder) {
                    self.refuse_at("COPY", place, "it puts files above the working directory");
                }
                continue;
            }
            let folder = match &content {
                Content::File { .. } | Content::Executable => parent_of(&path),
                Content::Tree(_) | Content::Folder => path.as_str(),
            };
            if is_of_system(folder) {
                let reason = format!("`{path}` is in a folder of the system");
                self.need_image("COPY", place, &reason);
                continue;
            }
            let at = outer(&mut made.outside, folder);
            let OuterFolder { path: own, directories, trees, files } = &mut made.outside[at];
            let to = below(&path, own).unwrap_or_default();
            self.put(content, to, place, &mut Layout { directories, trees, files });
        }
        made.workdir = workdir;
        made
    }

    /// Puts something into a folder of a sandbox, at the relative path `to`.
    fn put(&mut self, content: Content, to: String, place: Excerpt, layout: &mut Layout<'_>) {
        match content {
            Content::Tree(from) => layout.trees.push(CopyTree { from, to, source: place }),
            Content::File { content, executable } => {
                // A later file replaces an earlier one.
                layout.files.retain(|file| file.path != to);
                layout.files.push(FixtureFile { path: to, content, executable, source: place });
            }
            Content::Folder if to == "." => {}
            Content::Folder => layout.directories.push(to),
            Content::Executable => {
                let known = layout.files.iter().any(|file| is_inside(&file.path, &to))
                    || layout.directories.iter().any(|folder| is_inside(folder, &to));
                layout
                    .files
                    .iter_mut()
                    .filter(|file| is_inside(&file.path, &to))
                    .for_each(|file| file.executable = true);
                let (made, faults) = executables(layout.trees, &to, &place);
                for fault in faults {
                    self.found.push(Diagnostic::error(fault).at(place.clone()));
                }
                if made.is_empty() && !known {
                    let problem = Diagnostic::error(format!("no file is copied to `{to}`, whose mode is set"));
                    self.found.push(problem.at(place));
                }
                let is_new = |file: &FixtureFile| !layout.files.iter().any(|known| known.path == file.path);
                let made: Vec<FixtureFile> = made.into_iter().filter(is_new).collect();
                layout.files.extend(made);
            }
        }
    }
}

/// The parts of a folder of a sandbox.
struct Layout<'a> {
    directories: &'a mut Vec<String>,
    trees: &'a mut Vec<CopyTree>,
    files: &'a mut Vec<FixtureFile>,
}

/// Returns the files of `trees` that are at `to` or below it, as executable files, and the faults.
fn executables(trees: &[CopyTree], to: &str, place: &Excerpt) -> (Vec<FixtureFile>, Vec<String>) {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for tree in trees {
        let entries = walkdir::WalkDir::new(&tree.from).sort_by_file_name().into_iter().filter_map(Result::ok);
        for entry in entries.filter(|entry| entry.file_type().is_file()) {
            let Some(name) = entry.path().strip_prefix(&tree.from).ok().and_then(Path::to_str) else { continue };
            let path = if tree.to == "." { name.to_owned() } else { format!("{}/{name}", tree.to) };
            if !is_inside(&path, to) {
                continue;
            }
            match fixtures::bytes(entry.path()) {
                Ok((content, _)) => {
                    let (content, source) = (content.into(), place.clone());
                    found.push(FixtureFile { path, content, executable: true, source });
                }
                Err(error) => faults.push(format!("cannot read `{path}`: {error}")),
            }
        }
    }
    (found, faults)
}

/// Returns `true` if the relative `path` is `folder` or below it.
fn is_inside(path: &str, folder: &str) -> bool {
    folder == "." || Path::new(path).starts_with(folder)
}

/// Returns the index of the folder outside of the working directory that contains `folder`, which is added if there is
/// none.
fn outer(outside: &mut Vec<OuterFolder>, folder: &str) -> usize {
    if let Some(at) = outside.iter().position(|known| below(folder, &known.path).is_some()) {
        return at;
    }
    let mut made = OuterFolder { path: folder.to_owned(), ..OuterFolder::default() };
    // A folder that contains known ones takes them in.
    for known in std::mem::take(outside) {
        let Some(prefix) = below(&known.path, folder) else {
            outside.push(known);
            continue;
        };
        let inside = |name: String| if name == "." { prefix.clone() } else { format!("{prefix}/{name}") };
        made.directories.extend(known.directories.into_iter().map(inside).chain([prefix.clone()]));
        made.trees.extend(known.trees.into_iter().map(|tree| CopyTree { to: inside(tree.to.clone()), ..tree }));
        made.files.extend(known.files.into_iter().map(|file| FixtureFile { path: inside(file.path.clone()), ..file }));
    }
    outside.push(made);
    outside.len() - 1
}

/// Returns `true` if a mode, as `chmod` takes it, makes files executable.
fn makes_executable(mode: &str) -> bool {
    match u32::from_str_radix(mode, 8) {
        Ok(bits) => bits & 0o100 != 0,
        Err(_) => mode.split(',').any(|part| {
            part.split_once(['+', '='])
                .is_some_and(|(who, bits)| bits.contains('x') && (who.is_empty() || who.contains(['a', 'u'])))
        }),
    }
}

/// Returns `path` relative to `folder`, both absolute, if it is the folder or below it.
pub(super) fn below(path: &str, folder: &str) -> Option<String> {
    let rest = Path::new(path).strip_prefix(folder).ok()?.to_str()?;
    Some(if rest.is_empty() { ".".to_owned() } else { rest.to_owned() })
}

fn joined(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent })
}

fn is_archive(path: &str) -> bool {
    [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txz", ".tbz2"].iter().any(|ending| path.ends_with(ending))
}

/// Returns the files and folders of `context` that `operand` names, which may be a pattern.
fn matches(context: &Path, operand: &str) -> Vec<PathBuf> {
    let Ok(inside) = path::inside_sandbox(operand.trim_start_matches('/')) else { return Vec::new() };
    let plain = context.join(&inside);
    if plain.exists() {
        return vec![plain];
    }
    let Ok(glob) = GlobBuilder::new(&inside).literal_separator(true).build() else { return Vec::new() };
    let (matcher, depth) = (glob.compile_matcher(), inside.split('/').count());
    let entries = walkdir::WalkDir::new(context).min_depth(depth).max_depth(depth).sort_by_file_name();
    let entries = entries.into_iter().filter_map(Result::ok).map(walkdir::DirEntry::into_path);
    entries.filter(|path| path.strip_prefix(context).is_ok_and(|below| matcher.is_match(below))).collect()
}
