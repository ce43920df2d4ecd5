//! Formats of keys from all providers, in one table.
//!
//! The formats are those in gitleaks' default configuration that identify a key on their own, and those that model
//! providers document. Source: <https://github.com/gitleaks/gitleaks>, `config/gitleaks.toml` at commit 009e025ad410,
//! MIT, read on 2026-11-22. Formats that can be recognised only by the words around them, and values that are public
//! by design, are omitted. Each row lists marks, one of which every matching key contains, so that ordinary text is
//! searched only once.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

/// Minimum length of a string with one of these shapes, in bytes. Most masked strings are shorter.
const MIN_SHAPE_BYTES: usize = 16;

/// A shape of keys.
struct Shape {
    /// Strings, one of which is in every such key or in the text before it.
    marks: &'static [&'static str],
    /// Regular expression; its first group is masked, or the whole match if it has none.
    pattern: &'static str,
    condition: MatchCondition,
}

/// Condition under which a match counts as a key.
#[derive(PartialEq)]
enum MatchCondition {
    /// Always: nothing else has this form.
    Anywhere,
    /// Only if no letter or digit precedes it.
    Alone,
    /// Like `Alone`, and only if it contains a digit, because ordinary words have this form too.
    WithDigit,
}

const fn anywhere(marks: &'static [&'static str], pattern: &'static str) -> Shape {
    Shape { marks, pattern, condition: MatchCondition::Anywhere }
}

const fn alone(marks: &'static [&'static str], pattern: &'static str) -> Shape {
    Shape { marks, pattern, condition: MatchCondition::Alone }
}

const fn with_digit(marks: &'static [&'static str], pattern: &'static str) -> Shape {
    Shape { marks, pattern, condition: MatchCondition::WithDigit }
}

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    // Model providers.
    anywhere(&["sk-ant-"], r"sk-ant-[A-Za-z0-9_\-]{16,}"),
    with_digit(&["sk-"], r"sk-[A-Za-z0-9_\-]{24,}"),
    anywhere(&["AIza"], r"AIza[0-9A-Za-z_\-]{35}"),
    anywhere(&["gsk_"], r"gsk_[A-Za-z0-9]{32,}"),
    alone(&["xai-"], r"xai-[A-Za-z0-9]{32,}"),
    anywhere(&["pplx-"], r"pplx-[A-Za-z0-9]{32,}"),
    alone(&["hf_"], r"hf_[A-Za-z0-9]{30,}"),
    alone(&["api_org_"], r"api_org_[A-Za-z0-9]{34}"),
    alone(&["r8_"], r"r8_[A-Za-z0-9]{30,}"),
    anywhere(&["nvapi-"], r"nvapi-[A-Za-z0-9_\-]{40,}"),
    anywhere(&["lsv2_"], r"lsv2_[a-z]{2}_[A-Za-z0-9_]{32,}"),
    alone(&["dtn_"], r"dtn_[A-Za-z0-9]{32,}"),
    // Code hosts.
    anywhere(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"gh[pousr]_[A-Za-z0-9]{30,}"),
    anywhere(&["github_pat_"], r"github_pat_[A-Za-z0-9_]{40,}"),
    anywhere(&["glpat-"], r"glpat-[A-Za-z0-9_\-]{20,}(?:\.[0-9a-z]{9})?"),
    anywhere(&["glcbt-"], r"glcbt-[0-9A-Za-z]{1,5}_[0-9A-Za-z_\-]{20,}"),
    anywhere(&["gldt-", "glffct-", "glft-", "glimt-", "glrt-", "glsoat-", "gloas-", "glagent-"],
        r"gl(?:dt|ffct|ft|imt|rt|soat|oas|agent)-[0-9A-Za-z_\-]{20,}(?:\.[0-9a-z]{9})?"),
    anywhere(&["glptt-"], r"glptt-[0-9a-f]{40}"),
    anywhere(&["GR1348941"], r"GR1348941[A-Za-z0-9_\-]{20,}"),
    anywhere(&["_gitlab_session="], r"_gitlab_session=([0-9a-z]{32})"),
    anywhere(&["ATATT3"], r"ATATT3[A-Za-z0-9_\-=]{100,}"),
    anywhere(&["ATBB"], r"(?-u:\b)ATBB[A-Za-z0-9]{32}(?-u:\b)"),
    // Registries of packages and images.
    anywhere(&["npm_"], r"npm_[A-Za-z0-9]{36}"),
    anywhere(&["pypi-AgEIcHlwaS5vcmc"], r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_\-]{50,}"),
    anywhere(&["rubygems_"], r"rubygems_[a-f0-9]{48}"),
    anywhere(&["CLOJARS_"], r"CLOJARS_[A-Za-z0-9]{60}"),
    anywhere(&["dckr_pat_"], r"dckr_pat_[A-Za-z0-9_\-]{24,}"),
    alone(&["AKCp"], r"AKCp[A-Za-z0-9]{69}"),
    alone(&["cmVmd"], r"cmVmd[A-Za-z0-9]{59}"),
    // Clouds.
    alone(&["AKIA", "ASIA", "ABIA", "ACCA", "A3T"], r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)"),
    alone(&["ABSK"], r"ABSK[A-Za-z0-9+/]{109,}={0,2}"),
    anywhere(&["Q~"], r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}"),
    anywhere(&["AccountKey=", "SharedAccessKey="], r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})"),
    anywhere(&["sig="], r"[?&]sig=([A-Za-z0-9%+/=]{40,})"),
    anywhere(&["GOCSPX-"], r"GOCSPX-[A-Za-z0-9_\-]{28}"),
    alone(&["ya29."], r"ya29\.[A-Za-z0-9_\-]{30,}"),
    alone(&["LTAI"], r"LTAI[A-Za-z0-9]{20}"),
    anywhere(&["doo_v1_", "dop_v1_", "dor_v1_"], r"do[opr]_v1_[a-f0-9]{64}"),
    alone(&["fo1_"], r"fo1_[A-Za-z0-9_\-]{43}"),
    alone(&["fm1a_", "fm1r_", "fm2_"], r"fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}={0,3}"),
    alone(&["HRKU-AA"], r"HRKU-AA[0-9A-Za-z_\-]{58}"),
    alone(&["v1.0-"], r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    alone(&["tk-us-"], r"tk-us-[A-Za-z0-9_\-]{48}"),
    anywhere(&["sbp_"], r"sbp_[a-f0-9]{40}"),
    alone(&["t1."], r"t1\.[A-Z0-9a-z_\-]+=?=?\.[A-Z0-9a-z_\-]{86}={0,2}"),
    alone(&["AQVN"], r"AQVN[A-Za-z0-9_\-]{35,38}"),
    // Infrastructure.
    alone(&["hvs.", "hvb."], r"hv[sb]\.[A-Za-z0-9_\-]{24,}"),
    anywhere(&[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9\-_=]{60,70}"),
    alone(&["pul-"], r"pul-[a-f0-9]{40}"),
    alone(&["ico-"], r"ico-[A-Za-z0-9]{32}"),
    anywhere(&["sha256~"], r"sha256~[A-Za-z0-9_\-]{43}"),
    alone(&["dapi"], r"dapi[a-f0-9]{32}(?:-[0-9])?"),
    alone(&["dp.pt.", "dp.st.", "dp.ct."], r"dp\.(?:pt|st|ct)\.[A-Za-z0-9._\-]{40,}"),
    anywhere(&["pscale_tkn_", "pscale_oauth_", "pscale_pw_"], r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.\-]{32,64}"),
    alone(&["pnu_"], r"pnu_[A-Za-z0-9]{36}"),
    alone(&["API-"], r"API-[A-Z0-9]{26}(?-u:\b)"),
    alone(&["A3-"], r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"),
    anywhere(&["ops_eyJ"], r"ops_eyJ[A-Za-z0-9+/]{250,}={0,3}"),
    anywhere(&["AGE-SECRET-KEY-1"], r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    // Monitoring.
    anywhere(&["dt0c01."], r"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    anywhere(&["glc_"], r"glc_[A-Za-z0-9+/]{32,400}={0,3}"),
    anywhere(&["glsa_"], r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    anywhere(&["NRAK-", "NRII-", "NRJS-"], r"NR(?:AK-[A-Z0-9]{27}|II-[A-Za-z0-9\-]{32}|JS-[a-f0-9]{19})"),
    anywhere(&["sntrys_eyJ"], r"sntrys_eyJ[A-Za-z0-9+/=_]{80,}"),
    anywhere(&["sntryu_"], r"sntryu_[a-f0-9]{64}"),
    anywhere(&["sgp_"], r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"),
    anywhere(&["PMAK-"], r"PMAK-[A-Fa-f0-9]{24}-[A-Fa-f0-9]{34}"),
    // Chat, mail and documents.
    anywhere(&["xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"], r"xox[abeoprs]-[A-Za-z0-9\-]{16,}"),
    anywhere(&["xoxe.xox"], r"xoxe\.xox[bp]-[0-9]-[A-Za-z0-9]{60,}"),
    anywhere(&["xapp-"], r"xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[A-Za-z0-9]+"),
    anywhere(&["hooks.slack.com/"], r"hooks\.slack\.com/((?:services|workflows|triggers)/[A-Za-z0-9+/]{20,})"),
    anywhere(&["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        r"discord(?:app)?\.com/api/webhooks/([0-9]{15,}/[A-Za-z0-9_\-]{30,})"),
    anywhere(&[".webhook.office.com/"], r"\.webhook\.office\.com/(webhookb2/[A-Za-z0-9@\-/]{40,})"),
    anywhere(&["chat.googleapis.com/"], r"chat\.googleapis\.com/v1/spaces/[^/\s]+/messages\?(key=[^\s\x22'<>]+)"),
    anywhere(&[":AA"], r"(?-u:\b)[0-9]{8,10}:AA[A-Za-z0-9_\-]{33}"),
    anywhere(&["SG."], r"(?-u:\b)SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{32,}"),
    anywhere(&["xkeysib-"], r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    alone(&["key-"], r"key-[a-f0-9]{32}(?-u:\b)"),
    alone(&["ntn_"], r"ntn_[0-9]{11}[A-Za-z0-9]{35}"),
    anywhere(&["lin_api_"], r"lin_api_[A-Za-z0-9]{40}"),
    anywhere(&["tfp_"], r"tfp_[A-Za-z0-9\-_.=]{59}"),
    alone(&["rdme_"], r"rdme_[a-z0-9]{70}"),
    anywhere(&["fio-u-"], r"fio-u-[A-Za-z0-9\-_=]{64}"),
    alone(&["p8e-"], r"p8e-[A-Za-z0-9]{32}"),
    // Payment, retail and shipping.
    anywhere(&["sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"],
        r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    anywhere(&["whsec_"], r"whsec_[A-Za-z0-9+/]{24,}={0,2}"),
    alone(&["sq0atp-", "sq0csp-", "EAAA"], r"(?:EAAA|sq0[ac][ts]p-)[A-Za-z0-9_\-]{22,60}"),
    alone(&["EAAM", "EAAC"], r"EAA[MC][A-Za-z0-9]{100,}"),
    anywhere(&["shpat_", "shpca_", "shppa_", "shpss_"], r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    anywhere(&["shippo_"], r"shippo_(?:live|test)_[a-fA-F0-9]{40}"),
    anywhere(&["duffel_"], r"duffel_(?:test|live)_[A-Za-z0-9_\-=]{43}"),
    alone(&["EZAK", "EZTK"], r"EZ[AT]K[A-Za-z0-9]{54}"),
    anywhere(&["FLWSECK_TEST-", "FLWSECK-"], r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?"),
    anywhere(&["sm_aat_", "sm_pat_", "sm_sat_"], r"sm_[aps]at_[A-Za-z0-9]{16}"),
    anywhere(&["s-s4t2ud-", "s-s4t2af-"], r"s-s4t2(?:ud|af)-[a-f0-9]{64}"),
    anywhere(&["_mmk"], r"(?-u:\b)[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    // Keys and tokens that are not specific to a provider.
    anywhere(&["eyJ"], r"eyJ[A-Za-z0-9_\-]{14,}\.eyJ[A-Za-z0-9_\-]{14,}(?:\.[A-Za-z0-9_\-]*)?"),
    alone(&["ZXlK"], r"ZXlK[A-Za-z0-9+/_\-]{60,}={0,2}"),
    anywhere(&["PRIVATE KEY"],
        r"-----BEGIN[ A-Z0-9_\-]{0,100}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END[ A-Z0-9_\-]{0,100}PRIVATE KEY(?: BLOCK)?-----|\z)"),
    // Text is cut before it is masked, so the first line of a key, or a part of it, may be missing.
    anywhere(&["PRIVATE KEY"],
        r"((?:[A-Za-z0-9+/=]{16,}\s+)*[A-Za-z0-9+/=]+\s+-----END[ A-Z0-9_\-]{0,100}PRIVATE KEY)"),
    anywhere(&["PRIVATE KEY"], r"PRIVATE KEY(?: BLOCK)?-----\s+((?:[A-Za-z0-9+/=]{16,}\s*)+)"),
    anywhere(&["machine "], r"machine[ \t]+\S+\s+login\s+\S+\s+password\s+(\S+)"),
    with_digit(&["earer ", "EARER "], r"(?i)bearer[ \t]+([A-Za-z0-9._~+/\-]{16,}={0,2})"),
    with_digit(&["asic ", "ASIC "], r"(?i)basic[ \t]+([A-Za-z0-9+/]{12,}={0,2})"),
    with_digit(&["uthorization", "UTHORIZATION"],
        r#"(?i)authorization["']?[ \t]*[:=][ \t]*["']?(?:[a-z]+[ \t]+)?([A-Za-z0-9._~+/=\-]{16,})"#),
    anywhere(&["pi-key", "pi-Key", "PI-KEY", "PI-Key"], r#"(?i)x-api-key["']?[ \t]*[:=][ \t]*["']?([A-Za-z0-9._~+/=\-]{8,})"#),
    anywhere(&["://"], r#"://([^/?\#\s:@"'<>]*:[^/?\#\s"'<>]+)@"#),
    anywhere(&["key=", "Key=", "KEY=", "oken=", "OKEN=", "ecret=", "ECRET=", "assword=", "ASSWORD="],
        r#"(?i)[?&](?:(?:[a-z]+[_-])?(?:api[_-]?key|key|token|secret|password))=([^&\s"'<>]+)"#),
];

/// Expression that finds all marks in the table in one pass.
static MARKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let marks: Vec<String> = SHAPES.iter().flat_map(|shape| shape.marks).map(|mark| regex::escape(mark)).collect();
    compiled(&marks.join("|"))
});

/// Patterns, compiled on first use, because few runs need many of them.
static PATTERNS: LazyLock<Vec<OnceLock<Option<Regex>>>> =
    LazyLock::new(|| SHAPES.iter().map(|_| OnceLock::new()).collect());

fn compiled(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).build().ok()
}

/// Calls `found` with every range of `text` that has the shape of a key.
pub(super) fn search(text: &[u8], mut found: impl FnMut(Range<usize>)) {
    let Some(marks) = MARKS.as_ref().filter(|_| text.len() >= MIN_SHAPE_BYTES) else { return };
    let mut there: Vec<&[u8]> = Vec::new();
    for mark in marks.find_iter(text) {
        if !there.contains(&mark.as_bytes()) {
            there.push(mark.as_bytes());
        }
    }
    if there.is_empty() {
        return;
    }
    for (shape, pattern) in SHAPES.iter().zip(PATTERNS.iter()) {
        // A mark may be contained in a longer one.
        let is_there = |mark: &str| there.iter().any(|found| holds(found, mark.as_bytes()));
        if !shape.marks.iter().any(|mark| is_there(mark)) {
            continue;
        }
        let Some(pattern) = pattern.get_or_init(|| compiled(shape.pattern)) else { continue };
        for captures in pattern.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            let key = captures.get(1).unwrap_or(whole);
            if shape.is_met(text, whole.start(), key.as_bytes()) {
                found(key.range());
            }
        }
    }
}

/// Returns the length of the partial key at the end of `text` if its end was cut off.
pub(super) fn begun(text: &[u8]) -> Option<usize> {
    let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'=' | b'~');
    let text = &text[text.len().saturating_sub(MAX_KEY_BYTES)..];
    let start = text.iter().rposition(|byte| !is_of_key(byte)).map_or(0, |index| index + 1);
    let token = &text[start..];
    let named =
        SHAPES.iter().filter(|shape| shape.condition != MatchCondition::WithDigit).flat_map(|shape| shape.marks);
    let marks = named.filter(|mark| mark.len() >= 4 && mark.bytes().all(|byte| is_of_key(&byte)));
    // A name may precede the key: `GITHUB_TOKEN_ghp_…`.
    let starts = |index: usize| index == 0 || !token[index - 1].is_ascii_alphanumeric();
    let found = marks.filter_map(|mark| {
        let mark = mark.as_bytes();
        let index = token.windows(mark.len()).enumerate().position(|(index, part)| part == mark && starts(index))?;
        (token.len() > index + mark.len()).then_some(token.len() - index)
    });
    found.max()
}

/// Returns the length of the partial key at the start of `text` if its beginning was cut off, including a partial
/// `Bearer ` before it. A long word with a letter and a digit counts as one, because the characteristic prefix of the
/// key is missing.
pub(super) fn ended(text: &[u8]) -> Option<usize> {
    const SCHEME: &[u8] = b"Bearer ";
    let is_of_key =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'=' | b'~' | b'/');
    let scheme = (1..SCHEME.len()).map(|index| &SCHEME[index..]).find(|end| end.len() > 1 && text.starts_with(end));
    let start = scheme.map_or(0, <[u8]>::len);
    let token: &[u8] = &text[start..];
    let length = token.iter().take_while(|byte| is_of_key(byte)).count();
    let token = &token[..length];
    let is_random = token.iter().any(u8::is_ascii_digit) && token.iter().any(u8::is_ascii_alphabetic);
    let is_secret = is_random || scheme.is_some_and(|scheme| scheme.len() >= 4);
    (length >= MIN_END_BYTES && is_secret).then_some(start + length)
}

/// Returns the length of the user name and password at the end of `text`, a URL that was cut off in or after them. An
/// `@` may be part of the password, so everything counts.
pub(super) fn begun_url(text: &[u8]) -> Option<usize> {
    let text = &text[text.len().saturating_sub(MAX_URL_BYTES)..];
    let index = text.windows(3).rposition(|part| part == b"://")? + 3;
    let user_info = &text[index..];
    let colon = user_info.iter().position(|byte| *byte == b':')?;
    let (user, password) = (&user_info[..colon], &user_info[colon + 1..]);
    let is_port = password.len() <= MAX_PORT_LEN && password.iter().all(u8::is_ascii_digit);
    let is_whole = user.starts_with(b"[") || user_info.iter().any(|byte| ends_authority(*byte));
    (!is_port && !is_whole).then_some(user_info.len())
}

/// Returns the length of the remaining user name and password at the start of `text`, a URL whose beginning was cut
/// off.
pub(super) fn ended_url(text: &[u8]) -> Option<usize> {
    let text = &text[..text.len().min(MAX_URL_BYTES)];
    let end = text.iter().position(|byte| ends_authority(*byte)).unwrap_or(text.len());
    let index = text[..end].iter().rposition(|byte| *byte == b'@')?;
    let has_host = text[..end].get(index + 1).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'[');
    (index > 0 && has_host).then_some(index)
}

/// Returns `true` for a byte that cannot be part of the user name, the password or the host in a URL.
fn ends_authority(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>')
}

/// Maximum length of the beginning of a key that is examined next to a cut, in bytes.
const MAX_KEY_BYTES: usize = 4096;
/// Maximum length of the part of a URL that is examined next to a cut, in bytes.
const MAX_URL_BYTES: usize = 1024;
/// Maximum number of digits of a port.
const MAX_PORT_LEN: usize = 5;

/// Minimum length of the end of a key that is masked, in bytes. Shorter ends reveal too little.
const MIN_END_BYTES: usize = 12;

impl Shape {
    fn is_met(&self, text: &[u8], start: usize, key: &[u8]) -> bool {
        let before = start.checked_sub(1).and_then(|index| text.get(index));
        let stands_alone = !before.is_some_and(u8::is_ascii_alphanumeric);
        match self.condition {
            MatchCondition::Anywhere => true,
            MatchCondition::Alone => stands_alone,
            MatchCondition::WithDigit => stands_alone && key.iter().any(u8::is_ascii_digit),
        }
    }
}

fn holds(text: &[u8], mark: &[u8]) -> bool {
    text.windows(mark.len().max(1)).any(|part| part == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_has_a_marker() {
        assert!(MARKS.is_some());
        for shape in SHAPES {
            assert!(compiled(shape.pattern).is_some(), "{}", shape.pattern);
            assert!(!shape.marks.is_empty() && shape.marks.iter().all(|mark| mark.len() > 1), "{}", shape.pattern);
        }
    }
}
