//! Converts TypeScript to JavaScript, and extracts other information from a module's text.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrowFunctionExpression, CallExpression, Decorator, DoWhileStatement, ForInStatement, ForOfStatement, ForStatement,
    Function, NewExpression, Program, ThrowStatement, WhileStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::{Parser, ParserReturn};
use oxc_semantic::{ScopeFlags, SemanticBuilder};
use oxc_span::{GetSpan, SourceType, Span};
use oxc_syntax::module_record::ImportImportName;
use oxc_transformer::{
    DecoratorOptions, HelperLoaderMode, HelperLoaderOptions, JsxOptions, JsxRuntime, TransformOptions, Transformer,
};

use crate::error::DECORATORS;
use crate::source_map::Mapping;
use crate::syntax::{Mistake, span, with_stack};

/// Language of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// An ECMAScript module or a script.
    JavaScript,
    /// TypeScript.
    TypeScript,
    /// TypeScript or JavaScript with JSX.
    Jsx,
}

/// Settings of TypeScript for a module that is compiled completely.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compiler {
    /// `experimentalDecorators`.
    pub has_decorators: bool,
    /// `emitDecoratorMetadata`.
    pub emits_metadata: bool,
    /// `strictNullChecks`.
    pub is_strict: bool,
    /// True if `jsx` is `react`: elements become calls of a function that the module imports itself.
    pub is_classic_jsx: bool,
    /// `jsxImportSource`.
    pub jsx_source: Option<String>,
    /// `jsxFactory`.
    pub jsx_factory: Option<String>,
    /// `jsxFragmentFactory`.
    pub jsx_fragment: Option<String>,
}

impl Compiler {
    fn options(&self) -> TransformOptions {
        TransformOptions {
            decorator: DecoratorOptions {
                legacy: self.has_decorators,
                emit_decorator_metadata: self.emits_metadata,
                strict_null_checks: self.is_strict,
            },
            jsx: JsxOptions {
                runtime: if self.is_classic_jsx { JsxRuntime::Classic } else { JsxRuntime::Automatic },
                import_source: self.jsx_source.clone(),
                pragma: self.jsx_factory.clone(),
                pragma_frag: self.jsx_fragment.clone(),
                ..JsxOptions::default()
            },
            helper_loader: HelperLoaderOptions { mode: HelperLoaderMode::External, ..HelperLoaderOptions::default() },
            ..TransformOptions::default()
        }
    }
}

impl Language {
    /// Returns the language of a file with this name, if it is one of the two.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "js" | "mjs" | "cjs" => Some(Self::JavaScript),
            "ts" | "mts" | "cts" => Some(Self::TypeScript),
            "tsx" | "jsx" => Some(Self::Jsx),
            _ => None,
        }
    }

    pub(crate) fn source_type(self) -> SourceType {
        match self {
            // The text shows whether it is a module.
            Self::JavaScript => SourceType::unambiguous(),
            Self::TypeScript => SourceType::ts(),
            Self::Jsx => SourceType::tsx(),
        }
    }
}

/// Parses `text` and returns the result of `read`. Returns an error if the text is nested too deeply.
pub(crate) fn with_parsed<T: Send>(
    text: &str,
    language: Language,
    read: impl FnOnce(ParserReturn<'_>) -> Result<T, Mistake> + Send,
) -> Result<T, Mistake> {
    with_stack(text, || {
        let allocator = Allocator::default();
        read(Parser::new(&allocator, text, language.source_type()).parse())
    })
}

/// Text without types.
pub(crate) struct Stripped {
    pub code: String,
    pub mapping: Mapping,
}

/// Removes the types from `text`: enumerations, namespaces and parameter properties become code, and imports that are
/// used only by types are removed. With a `compiler`, decorators and JSX become code as well.
pub(crate) fn strip(
    text: &str,
    path: &Path,
    language: Language,
    compiler: Option<&Compiler>,
) -> Result<Stripped, Mistake> {
    with_stack(text, || {
        let allocator = Allocator::default();
        let parsed = Parser::new(&allocator, text, language.source_type()).parse();
        first_error(&parsed)?;
        match compiler {
            None => undecorated(&parsed.program, DECORATORS, None)?,
            Some(compiler) if compiler.has_decorators => {}
            Some(_) => undecorated(&parsed.program, "standard decorators are not supported", Some(LEGACY_DECORATORS))?,
        }
        let mut program = parsed.program;
        let semantic = SemanticBuilder::new().with_excess_capacity(2.0).with_enum_eval(true).build(&program);
        if let Some(error) = semantic.diagnostics.errors().next() {
            return Err(mistake(error));
        }
        let scoping = semantic.semantic.into_scoping();
        let options = compiler.map(Compiler::options).unwrap_or_default();
        let done = Transformer::new(&allocator, path, &options).build_with_scoping(scoping, &mut program);
        if let Some(error) = done.diagnostics.errors().next() {
            return Err(mistake(error));
        }
        let printed = print(&program, path);
        let mapping = printed.map.as_ref().map(Mapping::new).unwrap_or_default();
        Ok(Stripped { code: printed.code, mapping })
    })
}

fn print<'a>(program: &'a Program<'a>, path: &Path) -> oxc_codegen::CodegenReturn<'a> {
    let options = CodegenOptions { source_map_path: Some(path.to_path_buf()), ..CodegenOptions::default() };
    Codegen::new().with_options(options).build(program)
}

/// Rejects decorators, because the engine does not support them and its error message does not help.
fn undecorated(program: &Program<'_>, message: &str, help: Option<&str>) -> Result<(), Mistake> {
    let mut search = Decorators(None);
    search.visit_program(program);
    match search.0 {
        None => Ok(()),
        Some(span) => Err(Mistake { message: message.into(), span, help: help.map(str::to_owned) }),
    }
}

/// Advice about decorators that TypeScript's own implementation would compile.
const LEGACY_DECORATORS: &str = "set `experimentalDecorators` in `tsconfig.json` for those of TypeScript";

/// Finds the location of the first decorator.
struct Decorators(Option<model::Span>);

impl<'a> Visit<'a> for Decorators {
    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.0.get_or_insert(span(decorator.span));
    }
}

/// Returns the first error in `text`, if there is one.
pub(crate) fn check(text: &str, language: Language) -> Result<(), Mistake> {
    with_parsed(text, language, |parsed| {
        first_error(&parsed)?;
        undecorated(&parsed.program, DECORATORS, None)?;
        let semantic =
            SemanticBuilder::new().with_build_nodes(true).with_check_syntax_error(true).build(&parsed.program);
        semantic.diagnostics.errors().next().map_or(Ok(()), |error| Err(mistake(error)))
    })
}

/// Returns the first error of the parser in `text`, if there is one.
pub(crate) fn check_syntax(text: &str, language: Language) -> Result<(), Mistake> {
    with_parsed(text, language, |parsed| first_error(&parsed))
}

/// Returns `true` if `text`, which is JavaScript, has imports or exports. For an invalid text, words that suggest them
/// are sufficient.
pub(crate) fn is_module(text: &str) -> bool {
    if !may_be_module(text) {
        return false;
    }
    let known =
        with_parsed(text, Language::JavaScript, |parsed| Ok(parsed.module_record.has_module_syntax || parsed.panicked));
    known.unwrap_or(true)
}

/// Returns `true` if the words `import`, `export` or `await` occur as in a module. Parsing the text takes far longer,
/// and most texts that are not modules contain none of them.
fn may_be_module(text: &str) -> bool {
    let bytes = text.as_bytes();
    let stands_alone = |index: usize, length: usize| {
        let before = index.checked_sub(1).and_then(|index| bytes.get(index));
        let after = bytes.get(index + length);
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.');
        !before.is_some_and(is_word) && !after.is_some_and(|byte| is_word(byte) && *byte != b'.')
    };
    ["import", "export", "await"]
        .iter()
        .any(|word| text.match_indices(word).any(|(offset, _)| stands_alone(offset, word.len())))
}

/// Returns the location at which `text` imports `specifier`.
pub(crate) fn import_span(text: &str, language: Language, specifier: &str) -> Option<model::Span> {
    let found = with_parsed(text, language, |parsed| {
        let requests = parsed.module_record.requested_modules.get(specifier);
        Ok(requests.and_then(|requests| requests.first()).map(|request| span(request.span)))
    });
    found.ok().flatten().or_else(|| {
        ['"', '\'', '`'].into_iter().find_map(|quote| {
            let written = format!("{quote}{specifier}{quote}");
            text.find(&written).map(|offset| model::Span::new(offset, offset + written.len()))
        })
    })
}

/// Returns the specifiers that `text` imports, in no particular order. Empty if it is not valid.
pub(crate) fn imported(text: &str, language: Language) -> Vec<String> {
    let found = with_parsed(text, language, |parsed| {
        Ok(parsed.module_record.requested_modules.keys().map(ToString::to_string).collect())
    });
    found.unwrap_or_default()
}

/// Returns the imports of values in `text` with their locations. Imports of types only are omitted.
pub(crate) fn imported_values(text: &str, language: Language) -> Vec<(String, model::Span)> {
    let found = with_parsed(text, language, |parsed| {
        let requests = parsed.module_record.requested_modules.iter();
        let values = requests.filter_map(|(name, requests)| {
            let request = requests.iter().find(|request| !request.is_type)?;
            Some((name.to_string(), span(request.span)))
        });
        Ok(values.collect())
    });
    found.unwrap_or_default()
}

pub(crate) fn first_error(parsed: &ParserReturn<'_>) -> Result<(), Mistake> {
    match parsed.diagnostics.errors().next() {
        Some(error) => Err(mistake(error)),
        None if parsed.panicked => {
            Err(Mistake { message: "this is not a valid program".into(), span: model::Span::new(0, 0), help: None })
        }
        None => Ok(()),
    }
}

pub(crate) fn mistake(error: &oxc_diagnostics::OxcDiagnostic) -> Mistake {
    // Of two declarations, the later one is the error.
    let repeated = error.message.contains("already been declared");
    let label = if repeated { error.labels.iter().max_by_key(|label| label.offset()) } else { error.labels.first() };
    let span = label.map_or_else(Default::default, |label| {
        let start = label.offset() as usize;
        model::Span::new(start, start + label.len() as usize)
    });
    let help = error.help.as_ref().map(ToString::to_string);
    Mistake { message: error.message.to_string(), span, help }
}

/// Returns the location at which `text` imports `name` from a module whose specifier ends in something like `stem`.
pub(crate) fn imported_name(text: &str, language: Language, name: &str, stem: &str) -> Option<model::Span> {
    let found = with_parsed(text, language, |parsed| {
        let entries = parsed.module_record.import_entries.iter();
        Ok(entries.filter(|entry| entry.module_request.name.as_str().contains(stem) || stem == "index").find_map(
            |entry| match &entry.import_name {
                ImportImportName::Name(imported) if imported.name.as_str() == name => Some(span(imported.span)),
                ImportImportName::Default(range) if name == "default" => Some(span(*range)),
                _ => None,
            },
        ))
    });
    found.ok().flatten()
}

/// Returns the position of the thrown expression in the `throw` statement that contains byte `at`.
pub(crate) fn throw_around(text: &str, language: Language, index: usize) -> Option<usize> {
    let found = with_parsed(text, language, |parsed| {
        let mut search = Throws { at: u32::try_from(index).unwrap_or(u32::MAX), found: None };
        search.visit_program(&parsed.program);
        Ok(search.found)
    });
    found.ok().flatten().map(|start| start as usize)
}

/// Returns the beginning of the loop in which a function that has last passed byte `at` may be: the first one after
/// it, with no calls in between, in the same function and the same loop.
pub(crate) fn loop_after(text: &str, language: Language, index: usize) -> Option<usize> {
    find_loop(text, language, index..index)
}

/// Returns the beginning of the first loop in a function that begins between the bytes of `line`.
pub(crate) fn loop_of_function_on(text: &str, language: Language, line: std::ops::Range<usize>) -> Option<usize> {
    find_loop(text, language, line)
}

fn find_loop(text: &str, language: Language, passed: std::ops::Range<usize>) -> Option<usize> {
    let found = with_parsed(text, language, |parsed| {
        let [at, begins_before] = [passed.start, passed.end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        let mut search = Loops { at, begins_before, found: None, is_over: false, is_within_call: false };
        search.visit_program(&parsed.program);
        Ok(search.found)
    });
    found.ok().flatten().map(|start| start as usize)
}

struct Loops {
    at: u32,
    /// Upper limit for the beginnings of functions to search, if it is unknown whether the function contains `at`.
    begins_before: u32,
    found: Option<u32>,
    /// True if the following code cannot be reached without passing another call.
    is_over: bool,
    /// True if this is part of the call at `at`, and was therefore passed before.
    is_within_call: bool,
}

impl Loops {
    fn holds(&self, span: Span) -> bool {
        (span.start..=span.end).contains(&self.at)
    }

    fn function(&mut self, span: Span, walk: impl FnOnce(&mut Self)) {
        if self.holds(span) {
            (self.found, self.is_over, self.is_within_call) = (None, false, false);
            walk(self);
            self.is_over = true;
        } else if self.found.is_none() && (self.at..self.begins_before).contains(&span.start) {
            let around = std::mem::replace(&mut self.is_over, false);
            walk(self);
            self.is_over = around || self.found.is_some();
        }
    }

    fn looping(&mut self, span: Span, walk: impl FnOnce(&mut Self)) {
        if span.start > self.at && !self.is_over {
            self.found.get_or_insert(span.start);
        }
        walk(self);
        self.is_over |= self.holds(span);
    }

    fn call(&mut self, span: Span, walk: impl FnOnce(&mut Self)) {
        let around = self.is_within_call;
        self.is_within_call |= self.holds(span);
        walk(self);
        self.is_within_call = around;
        self.is_over |= span.start > self.at && !around;
    }
}

impl<'a> Visit<'a> for Loops {
    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.function(function.span, |inside| walk::walk_function(inside, function, flags));
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        self.function(function.span, |inside| walk::walk_arrow_function_expression(inside, function));
    }

    fn visit_while_statement(&mut self, statement: &WhileStatement<'a>) {
        self.looping(statement.span, |inside| walk::walk_while_statement(inside, statement));
    }

    fn visit_do_while_statement(&mut self, statement: &DoWhileStatement<'a>) {
        self.looping(statement.span, |inside| walk::walk_do_while_statement(inside, statement));
    }

    fn visit_for_statement(&mut self, statement: &ForStatement<'a>) {
        self.looping(statement.span, |inside| walk::walk_for_statement(inside, statement));
    }

    fn visit_for_in_statement(&mut self, statement: &ForInStatement<'a>) {
        self.looping(statement.span, |inside| walk::walk_for_in_statement(inside, statement));
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.looping(statement.span, |inside| walk::walk_for_of_statement(inside, statement));
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.call(call.span, |inside| walk::walk_call_expression(inside, call));
    }

    fn visit_new_expression(&mut self, call: &NewExpression<'a>) {
        self.call(call.span, |inside| walk::walk_new_expression(inside, call));
    }
}

struct Throws {
    at: u32,
    found: Option<u32>,
}

impl<'a> Visit<'a> for Throws {
    fn visit_throw_statement(&mut self, statement: &ThrowStatement<'a>) {
        if (statement.span.start..=statement.span.end).contains(&self.at) {
            // An inner statement is found later and replaces this one.
            self.found = Some(statement.argument.span().start);
            walk::walk_throw_statement(self, statement);
        }
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        if (function.span.start..=function.span.end).contains(&self.at) {
            self.found = None;
            walk::walk_function(self, function, flags);
        }
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        if (function.span.start..=function.span.end).contains(&self.at) {
            self.found = None;
            walk::walk_arrow_function_expression(self, function);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_located_only_if_no_other_call_comes_before_it() {
        // The engine has passed `<`. The loop begins at `>`.
        for (text, has_loop) in [
            ("f(<); >while (1) {}", true),
            ("f(<1, g(2)); >for (;;) { g(); }", true),
            ("const a = <() => { >do {} while (1); }", true),
            ("for (;;) { f(<); >for (const a of b) {} }", true),
            ("f(<); if (a) { >for (const b in c) {} }", true),
            ("f(<); g(); while (1) {}", false),
            ("for (;;) { f(<); } while (1) {}", false),
            ("f(<); const a = () => { while (1) {} };", false),
            ("const a = () => { f(<); }; while (1) {}", false),
            ("f(<);", false),
        ] {
            let offset = text.find('<').unwrap();
            let text = text.replacen('<', "", 1);
            let expected = if has_loop { text.find(" >").map(|offset| offset + 1) } else { None };
            let text = if has_loop { text.replacen(" >", " ", 1) } else { text };
            assert_eq!(loop_after(&text, Language::JavaScript, offset), expected, "{text}");
        }
    }

    #[test]
    fn a_loop_is_found_by_the_line_of_its_function() {
        for (text, found) in [
            ("scenario('x', async ({ agent }) => {\nlet n = 0;\nwhile (1) {}\n});", Some(48)),
            ("const a = () => 1, b = () => {\nfor (;;) {} };", Some(31)),
            ("while (1) {}\nconst a = () => 1;", None),
            ("const a = 1;\nconst b = () => { while (1) {} };", None),
        ] {
            let line = 0..text.find('\n').unwrap();
            assert_eq!(loop_of_function_on(text, Language::JavaScript, line), found, "{text}");
        }
    }
}
