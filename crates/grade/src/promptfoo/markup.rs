//! XML and HTML in an answer.

use std::sync::LazyLock;

use regex::Regex;

/// Maximum nesting depth of XML.
const MAX_DEPTH: usize = 500;

/// Maximum number of places in an answer at which XML may begin.
const MAX_STARTS: usize = 1000;

/// Element of a document, with its attributes as children called `@_name`.
#[derive(Debug, Default)]
struct Element {
    name: String,
    children: Vec<Element>,
}

impl Element {
    /// Returns `true` if there is an element at `path`. If several elements have the same name, the next step is the
    /// number of one of them, from 0.
    fn has(&self, path: &[&str]) -> bool {
        let Some((name, rest)) = path.split_first() else { return true };
        let found: Vec<&Self> = self.children.iter().filter(|child| child.name == *name).collect();
        match (found.as_slice(), rest) {
            ([], _) => false,
            ([only], rest) => only.has(rest),
            (_, []) => true,
            (many, [number, rest @ ..]) => {
                let index = number.parse::<usize>().ok().filter(|index| index.to_string() == *number);
                index.and_then(|index| many.get(index)).is_some_and(|chosen| chosen.has(rest))
            }
        }
    }
}

/// Returns an error if `text` is not a well-formed XML document with all `required` elements, which are paths such as
/// `root.item`.
pub(super) fn check_xml(text: &str, required: &[String]) -> Result<(), String> {
    let mut reader = Reader { text, at: 0 };
    let document = reader.document()?;
    missing(&document, required).map_or(Ok(()), Err)
}

/// Returns an error if `text` does not contain a well-formed element with all `required` elements.
pub(super) fn find_xml(text: &str, required: &[String]) -> Result<(), String> {
    let mut problem = "the answer contains no XML".to_owned();
    let mut at = 0;
    for _ in 0..MAX_STARTS {
        let Some(open) = text[at..].find('<') else { break };
        at += open;
        let mut reader = Reader { text, at };
        let mut found = Element::default();
        if reader.starts_a_name(1) && reader.element(&mut found, 0).is_ok() {
            match missing(&found, required) {
                None => return Ok(()),
                Some(reason) => problem = reason,
            }
            at = reader.at;
        } else {
            at += 1;
        }
    }
    Err(problem)
}

fn missing(document: &Element, required: &[String]) -> Option<String> {
    let absent: Vec<&str> = required
        .iter()
        .filter(|path| !document.has(&path.split('.').collect::<Vec<_>>()))
        .map(String::as_str)
        .collect();
    (!absent.is_empty()).then(|| format!("the XML has no {}", absent.join(", ")))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn starts_a_name(&self, offset: usize) -> bool {
        self.text[self.at..].get(offset..).is_some_and(|rest| rest.starts_with(is_name_start))
    }

    fn document(&mut self) -> Result<Element, String> {
        let mut document = Element::default();
        self.prolog()?;
        if !self.rest().starts_with('<') {
            return Err("it is not XML".to_owned());
        }
        self.element(&mut document, 0)?;
        self.prolog()?;
        match self.rest().is_empty() {
            true => Ok(document),
            false => Err("there is something after the root element".to_owned()),
        }
    }

    /// Skips white space, comments, instructions and the document type.
    fn prolog(&mut self) -> Result<(), String> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            let rest = self.rest();
            if rest.starts_with("<!--") || rest.starts_with("<?") {
                self.skip()?;
            } else if rest.starts_with("<!DOCTYPE") {
                let end = rest.find('>').ok_or("the document type is not closed")?;
                if rest[..end].contains('[') {
                    return Err("a document type with declarations is not supported".to_owned());
                }
                self.at += end + 1;
            } else {
                return Ok(());
            }
        }
    }

    /// Skips a comment or an instruction.
    fn skip(&mut self) -> Result<(), String> {
        let (open, close) = if self.rest().starts_with("<!--") { (4, "-->") } else { (2, "?>") };
        let length = self.rest()[open..].find(close).ok_or("a comment or an instruction is not closed")?;
        self.at += open + length + close.len();
        Ok(())
    }

    /// Reads the element at this place, and adds it to `parent`.
    fn element(&mut self, parent: &mut Element, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        self.at += 1;
        let mut element = Element { name: self.name()?, children: Vec::new() };
        if self.attributes(&mut element)? {
            parent.children.push(element);
            return Ok(());
        }
        loop {
            let rest = self.rest();
            let next = rest.find('<').ok_or_else(|| format!("`{}` is not closed", element.name))?;
            references(&rest[..next])?;
            if rest[..next].contains("]]>") {
                return Err("`]]>` must not occur in text".to_owned());
            }
            self.at += next;
            let rest = self.rest();
            if rest.starts_with("</") {
                self.at += 2;
                let name = self.name()?;
                let spaces = self.rest().len() - self.rest().trim_start().len();
                self.at += spaces;
                if name != element.name || !self.rest().starts_with('>') {
                    return Err(format!("`{}` is closed by `{name}`", element.name));
                }
                self.at += 1;
                parent.children.push(element);
                return Ok(());
            }
            if rest.starts_with("<![CDATA[") {
                self.at += rest.find("]]>").ok_or("a CDATA section is not closed")? + 3;
            } else if rest.starts_with("<!--") || rest.starts_with("<?") {
                self.skip()?;
            } else if self.starts_a_name(1) {
                self.element(&mut element, depth + 1)?;
            } else {
                return Err("`<` must not occur in text".to_owned());
            }
        }
    }

    /// Reads the attributes up to the end of the tag. Returns `true` if the element has no content.
    fn attributes(&mut self, element: &mut Element) -> Result<bool, String> {
        loop {
            let rest = self.rest();
            let spaces = rest.len() - rest.trim_start().len();
            self.at += spaces;
            let rest = self.rest();
            if rest.starts_with("/>") {
                self.at += 2;
                return Ok(true);
            }
            if rest.starts_with('>') {
                self.at += 1;
                return Ok(false);
            }
            if spaces == 0 {
                return Err(format!("the tag `{}` is not closed", element.name));
            }
            let name = format!("@_{}", self.name()?);
            let rest = self.rest().trim_start();
            let value = rest.strip_prefix('=').ok_or("an attribute has no value")?.trim_start();
            let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''));
            let quote = quote.ok_or("the value of an attribute is not quoted")?;
            let inside = &value[1..];
            let end = inside.find(quote).ok_or("the value of an attribute is not closed")?;
            references(&inside[..end])?;
            if inside[..end].contains('<') || element.children.iter().any(|other| other.name == name) {
                return Err(format!("the attribute `{}` is not valid", &name[2..]));
            }
            self.at = self.text.len() - inside.len() + end + 1;
            element.children.push(Element { name, children: Vec::new() });
        }
    }

    fn name(&mut self) -> Result<String, String> {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        if end == 0 || !rest.starts_with(is_name_start) {
            return Err("a name is missing".to_owned());
        }
        self.at += end;
        Ok(rest[..end].to_owned())
    }
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || matches!(c, ':' | '_')
}

fn is_name(c: char) -> bool {
    is_name_start(c) || c.is_numeric() || matches!(c, '-' | '.')
}

/// Checks that each `&` begins a reference.
fn references(text: &str) -> Result<(), String> {
    let is_reference = |after: &str| {
        let Some((name, _)) = after.split_once(';') else { return false };
        let numeric = |digits: &str, radix: u32| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        matches!(name, "amp" | "lt" | "gt" | "quot" | "apos")
            || name.strip_prefix("#x").is_some_and(|digits| numeric(digits, 16))
            || name.strip_prefix('#').is_some_and(|digits| numeric(digits, 10))
    };
    match text.split('&').skip(1).all(is_reference) {
        true => Ok(()),
        false => Err("`&` is not followed by the name of an entity".to_owned()),
    }
}

/// Elements of HTML that have no content.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// Other elements of HTML.
const ELEMENTS: &str = "html head title style body article section nav aside h1 h2 h3 h4 h5 h6 header footer address p \
                        pre blockquote ol ul li dl dt dd figure figcaption main div a em strong small s cite q dfn \
                        abbr ruby rt rp data time code var samp kbd sub sup i b u mark bdi bdo span iframe object \
                        param picture video audio map svg math script noscript canvas ins del table caption colgroup \
                        tbody thead tfoot tr td th form label button select datalist optgroup option textarea output \
                        progress meter fieldset legend details summary dialog menu slot template";

/// Returns an error if `text` is not HTML: it has text outside of all elements, or no element of HTML.
pub(super) fn check_html(text: &str) -> Result<(), String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("the answer is empty".to_owned());
    }
    if text.to_ascii_lowercase().starts_with("<?xml") {
        return Err("the answer is XML".to_owned());
    }
    let has_body = text.to_ascii_lowercase().contains("<body");
    let mut open: Vec<String> = Vec::new();
    let (mut is_known, mut has_loose_text) = (false, false);
    let mut rest = text;
    while !rest.is_empty() {
        let next = rest.find('<').unwrap_or(rest.len());
        has_loose_text |= open.is_empty() && !rest[..next].trim().is_empty();
        rest = &rest[next..];
        if let Some(after) = rest.strip_prefix("<!--") {
            rest = after.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let closes = rest.starts_with("</");
        let name_at = if closes { 2 } else { 1 };
        let name: String = rest.chars().skip(name_at).take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let name = name.to_ascii_lowercase();
        if name.is_empty() {
            has_loose_text |= open.is_empty() && !rest.is_empty() && !rest.starts_with("<!") && !rest.starts_with("</");
            rest = rest
                .split_once('>')
                .filter(|_| !name.is_empty() || rest.starts_with("<!") || closes)
                .map_or_else(|| rest.get(1..).unwrap_or_default(), |(_, after)| after);
            continue;
        }
        let Some((tag, after)) = rest.split_once('>') else { break };
        rest = after;
        if closes {
            if let Some(at) = open.iter().rposition(|other| *other == name) {
                open.truncate(at);
            }
            continue;
        }
        let is_void = VOID.contains(&name.as_str());
        is_known |= is_void || name.contains('-') || ELEMENTS.split_whitespace().any(|known| known == name);
        if !is_void && !tag.ends_with('/') {
            open.push(name);
        }
    }
    if has_loose_text && !has_body {
        return Err("the answer has text outside of elements".to_owned());
    }
    if is_known { Ok(()) } else { Err("the answer has no element of HTML".to_owned()) }
}

/// Returns `true` if `text` looks like it contains HTML.
pub(super) fn contains_html(text: &str) -> bool {
    static SIGNS: LazyLock<Vec<(Regex, u32)>> = LazyLock::new(|| {
        let signs = [
            (r"<[a-zA-Z][a-zA-Z0-9-]*(?:\s[^>]*)?/>", 1),
            (r"&(?:[a-zA-Z]+|#[0-9]+|#x[0-9a-fA-F]+);", 1),
            (r"(?i)<!DOCTYPE\s+html", 2),
            (r"<!--[^-]*(?:-[^-]+)*-->", 1),
            (r#"\s[a-zA-Z-]+=\s*["'][^"']*["']"#, 1),
            (
                r"(?i)<(?:html|head|body|div|span|p|a|img|h[1-6]|ul|ol|li|table|tr|td|th|form|input|button|script|style|link|meta|br|hr)\b",
                2,
            ),
            (r"<[a-zA-Z][a-zA-Z0-9-]*(?:\s[^>]*)?>", 1),
            (r"</[a-zA-Z][a-zA-Z0-9-]*\s*>", 1),
        ];
        signs.into_iter().filter_map(|(sign, weight)| Some((Regex::new(sign).ok()?, weight))).collect()
    });
    SIGNS.iter().filter(|(sign, _)| sign.is_match(text)).map(|(_, weight)| weight).sum::<u32>() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_is_checked_and_found() {
        let required = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
        for (text, paths) in [
            ("<a/>", &[][..]),
            ("<?xml version=\"1.0\"?>\n<!DOCTYPE a>\n<a b='1'><!-- c --><d>x &amp; y</d></a>\n", &["a.d", "a.@_b"]),
            ("<a><b>1</b><b><c/></b></a>", &["a.b", "a.b.1.c"]),
            ("<a><![CDATA[<&]]></a>", &["a"]),
        ] {
            assert_eq!(check_xml(text, &required(paths)), Ok(()), "{text}");
        }
        for text in ["", "a", "<a>", "<a></b>", "<a b=1/>", "<a b='1' b='2'/>", "<a>&x</a>", "<a/><b/>", "<a b></a>"] {
            assert!(check_xml(text, &[]).is_err(), "{text}");
        }
        assert_eq!(check_xml("<a><b/></a>", &required(&["a.c"])), Err("the XML has no a.c".to_owned()));
        assert_eq!(find_xml("Here: <a><b>1</b></a>, see?", &required(&["a.b"])), Ok(()));
        assert!(find_xml("1 < 2 and <a>", &[]).is_err());
        assert!(check_xml(&"<a>".repeat(100_000), &[]).is_err());
    }

    #[test]
    fn html_is_checked_and_found() {
        for text in ["<p>a</p>", "<!DOCTYPE html><html><body>a</body></html>", "<div><br>a</div>", "<x-y>a</x-y>"] {
            assert_eq!(check_html(text), Ok(()), "{text}");
        }
        for text in ["", "a", "a <p>b</p>", "<foo>a</foo>", "<?xml version='1.0'?><a/>", "<", "< a"] {
            assert!(check_html(text).is_err(), "{text}");
        }
        assert!(contains_html("Use <b>this</b>") && contains_html("a <br> b") && !contains_html("a < b"));
    }

    #[test]
    fn no_text_makes_the_readers_panic() {
        let seeds = ["<a b='1'><!--é--><![CDATA[x]]>&amp;<c/></a>", "<!DOCTYPE a><é></é>"];
        for seed in seeds {
            for at in (0..=seed.len()).filter(|at| seed.is_char_boundary(*at)) {
                for part in [&seed[..at], &seed[at..]] {
                    let _ = (check_xml(part, &[]), find_xml(part, &[]), check_html(part), contains_html(part));
                }
            }
        }
    }
}
