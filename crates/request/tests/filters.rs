//! Rules as defined by rsync: the examples of its manual, and comparison with a slow matcher written differently.

use downpour_request::{Filter, Pattern, PatternError, Rule, RuleError};

fn matches(pattern: &str, path: &str) -> bool {
    // In this file, the path of a directory ends in a slash.
    let name = path.strip_suffix('/').unwrap_or(path);
    Pattern::new(pattern.as_bytes()).expect("a pattern").matches(name.as_bytes(), name.len() < path.len())
}

#[test]
fn patterns_match_as_in_rsync_manual() {
    let table: [(&str, &[&str], &[&str]); 22] = [
        ("*.o", &["x.o", "a/b/x.o", ".o", "dir.o/"], &["x.oo", "a.o/x"]),
        ("/foo", &["foo", "foo/"], &["a/foo", "foo/a", "xfoo"]),
        ("foo/", &["foo/", "a/b/foo/"], &["foo", "a/foo", "foo/a"]),
        ("foo/bar", &["foo/bar", "a/foo/bar"], &["foo/a/bar", "xfoo/bar", "bar"]),
        ("/foo/*/bar", &["foo/a/bar"], &["foo/bar", "foo/a/b/bar", "x/foo/a/bar"]),
        ("/foo/**/bar", &["foo/a/bar", "foo/a/b/bar"], &["foo/bar", "x/foo/a/bar"]),
        ("**/bar", &["bar", "a/bar", "a/b/bar"], &["xbar", "bar/a"]),
        ("/**/bar", &["a/bar", "a/b/bar"], &["bar"]),
        ("foo/***", &["foo/", "foo/a", "foo/a/b", "x/foo/", "x/foo/a/"], &["foo", "xfoo/"]),
        ("/foo/***", &["foo/", "foo/a/b"], &["foo", "x/foo/a", "x/foo/"]),
        ("foo/**", &["foo/a", "foo/a/b", "x/foo/a"], &["foo", "foo/"]),
        ("*", &["a", "a/b", "a/"], &[]),
        ("*/", &["a/", "a/b/"], &["a"]),
        ("a*z", &["az", "abcz", "x/a.z"], &["a/z", "aza"]),
        ("a**z", &["az", "a/z", "x/a/b/z"], &["aza", "xa/z"]),
        ("a?c", &["abc", "x/abc"], &["a/c", "ac"]),
        ("[a-c!]x", &["ax", "cx", "!x"], &["dx", "-x", "/x"]),
        ("[!a-c]x", &["dx", "^x"], &["ax", "x"]),
        ("[^[:alpha:]_]", &["1", "-"], &["a", "Z", "_"]),
        ("[]-]", &["]", "-"], &["a"]),
        (r"\*[\]]?", &["*]a"], &["a]a", "*a]"]),
        (r"a\b", &[r"a\b"], &["ab"]),
    ];
    for (pattern, those, not) in table {
        assert!(those.iter().all(|path| matches(pattern, path)), "{pattern} matches {those:?}");
        assert!(!not.iter().any(|path| matches(pattern, path)), "{pattern} does not match {not:?}");
    }
    assert!(Pattern::new(b"\xff*").unwrap().matches(b"a/\xff\xfe", false), "bytes, not characters");
}

fn allowed(filter: &Filter, path: &str) -> bool {
    let name = path.strip_suffix('/').unwrap_or(path);
    filter.allows(name.as_bytes(), name.len() < path.len())
}

#[test]
fn first_matching_rule_decides() {
    let sources = Filter::parse(b"+ */\n+ *.c\n- *\n").unwrap();
    for (path, allows) in [("a/", true), ("a/b.c", true), ("a/b.h", false), ("c", false)] {
        assert_eq!(allowed(&sources, path), allows, "{path}");
    }
    let one = Filter::parse(b"# only this\n\n+ foo/\n+ foo/bar.c\n; nothing else\n- *").unwrap();
    for (path, allows) in [("foo/", true), ("foo/bar.c", true), ("foo/b", false), ("bar.c", false), ("foo", false)] {
        assert_eq!(allowed(&one, path), allows, "{path}");
    }
    let way = Filter::parse(b"+ /some/\r\n+ /some/path/\r\n+ /some/path/file\r\n+ /also\r\n- *\r\n").unwrap();
    for (path, allows) in [("some/path/file", true), ("some/path/other", false), ("also", true), ("x/also", false)] {
        assert_eq!(allowed(&way, path), allows, "{path}");
    }
    assert!(allowed(&Filter::default(), "anything"));
    assert!(allowed(&Filter::parse(b"- *\n!\n- b").unwrap(), "a"), "! forgets what was before");
}

#[test]
fn invalid_rule_is_reported_with_line() {
    assert_eq!(Filter::parse(b"+ a\n*.o\n"), Err(RuleError::Kind { line: 2 }));
    assert_eq!(Filter::parse(b"- \n"), Err(RuleError::Pattern { line: 1, error: PatternError::Empty }));
    for (pattern, error) in [
        (&b""[..], PatternError::Empty),
        (b"//", PatternError::Empty),
        (b"a\0", PatternError::Nul),
        (b"a[b", PatternError::OpenClass),
        (b"[]", PatternError::OpenClass),
        (b"[[:alpha", PatternError::OpenClass),
        (b"[[:letter:]]", PatternError::ClassName),
    ] {
        assert_eq!(Pattern::new(pattern), Err(error), "{pattern:?}");
    }
}

#[test]
fn filter_serialises_any_bytes() {
    let exclude = |text: &[u8]| Rule::Exclude(Pattern::new(text).unwrap());
    let filter = Filter::new(vec![Rule::Include(Pattern::new(b"/a b/*").unwrap()), exclude(b"\xff\n"), exclude(b"*")]);
    let text = serde_json::to_string(&filter).unwrap();
    assert_eq!(serde_json::from_str::<Filter>(&text).unwrap(), filter);
    assert_eq!(filter.to_string(), "+ /a b/*\n- \\xff\\n\n- *\n");
    assert!(serde_json::from_str::<Filter>(r#"[{"exclude":[91]}]"#).is_err(), "an open class");
}

#[test]
fn patterns_match_in_bounded_time() {
    let pattern = Pattern::new("*a".repeat(40).as_bytes()).unwrap();
    assert!(!pattern.matches(&[&[b'a'; 4000][..], b"b"].concat(), false));
    let pattern = Pattern::new("**a*a".repeat(20).as_bytes()).unwrap();
    assert!(!pattern.matches(&[&[b'a'; 1000][..], b"b"].concat(), false));
}
