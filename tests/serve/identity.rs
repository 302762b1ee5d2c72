//! Who asks: callers of one name are not one, forms are their own page's, and nobody learns what others asked.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardround::model::Family;

use crate::client::{Answer, Ask, Server, add_key, wardround};
use crate::page::{cookie, form, token};
use crate::systems::QUICK;

/// The cookie of a session that this key opens.
fn log_in(server: &Server, key: &str) -> String {
    let page = server.get("/login");
    let fields = [("token", &*token(&page)), ("key", key)];
    let opened = form(server, "/login", &fields, &[("cookie", &cookie(&page))]);
    assert_eq!(opened.status, 303, "{opened:?}");
    cookie(&opened)
}

fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    server.ask(&Ask { method: "GET", path, headers, body: "" })
}

/// Opens a case that is kept; returns its path.
fn open_case(server: &Server, who: (&str, &str)) -> String {
    let body = json!({"question": "Which?", "options": ["one", "two"], "seed": 1}).to_string();
    let headers = [("content-type", "application/json"), ("prefer", "respond-async"), who];
    let taken =
        server.ask(&Ask { method: "POST", path: "/v1/ask", headers: &headers, body: &body });
    assert_eq!(taken.status, 202, "{taken:?}");
    taken.header("location").to_owned()
}

#[test]
fn a_key_made_anew_under_an_old_name_is_another_caller() {
    let folder = tempfile::tempdir().unwrap();
    let old = add_key(folder.path(), "ward", "clinician");
    let server = Server::start_in(folder, &format!("{QUICK} --keys keys"));
    let session = log_in(&server, &old);
    assert_eq!(get(&server, "/", &[("cookie", &session)]).status, 200);
    let place = open_case(&server, ("authorization", &format!("Bearer {old}")));
    let revoked = wardround(server.folder.path()).args(["keys", "revoke", "keys", "ward"]).status();
    assert!(revoked.unwrap().success());
    let new = add_key(server.folder.path(), "ward", "clinician");
    server.signal("-HUP");
    let bearer = format!("Bearer {new}");
    let began = Instant::now();
    let seen = loop {
        let seen = get(&server, &place, &[("authorization", &bearer)]);
        if seen.status != 401 && seen.status != 429 {
            break seen;
        }
        assert!(began.elapsed() < Duration::from_secs(100));
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_eq!(seen.code(), (404, "case_not_found".to_owned()));
    assert_eq!(get(&server, "/", &[("cookie", &session)]).status, 303, "the old session lives");
}

#[test]
fn a_user_with_the_name_of_a_key_is_another_caller_and_who_asks_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let key = format!("Bearer {}", add_key(folder.path(), "ward", "api"));
    let flags = "--keys keys --trust-user-header x-remote-user --audit audit";
    let server = Server::start_in(folder, &format!("{QUICK} {flags}"));
    let place = open_case(&server, ("authorization", &key));
    assert_eq!(get(&server, &place, &[("authorization", &key)]).status, 200);
    let other = get(&server, &place, &[("x-remote-user", "ward")]);
    assert_eq!(other.code(), (404, "case_not_found".to_owned()));
    for headers in [
        [("x-remote-user", "ward"), ("x-remote-user", "dr.ho")],
        [("authorization", &*key), ("authorization", "Bearer wr_other")],
        [("x-api-key", "wr_one"), ("x-api-key", "wr_other")],
    ] {
        assert_eq!(get(&server, &place, &headers).code(), (400, "invalid_value".to_owned()));
    }
    // The trail tells them apart, and reveals no key.
    open_case(&server, ("x-remote-user", "ward"));
    let trail = server.folder.path().join("audit/trail.jsonl");
    let began = Instant::now();
    let lines = loop {
        let text = std::fs::read_to_string(&trail).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|line: &Value| line["event"] == "case")
            .collect();
        if lines.len() == 2 {
            break lines;
        }
        assert!(began.elapsed() < Duration::from_secs(100));
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(lines.iter().all(|line| line["actor"] == "ward"));
    let kind = |line: &Value| line["identity"].as_str().unwrap()[..4].to_owned();
    // Cases run beside each other: either may end first.
    let kinds: BTreeSet<String> = lines.iter().map(kind).collect();
    assert_eq!(kinds, BTreeSet::from(["key:".to_owned(), "user".to_owned()]));
}

#[test]
fn only_the_pages_own_forms_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let key = add_key(folder.path(), "ward", "clinician");
    let server = Server::start_in(folder, &format!("{QUICK} --keys keys"));
    let (page, other) = (server.get("/login"), server.get("/login"));
    let (own, others) = (cookie(&page), cookie(&other));
    assert_ne!(token(&page), token(&other), "the token is the same for all");
    let post = |headers: &[(&str, &str)]| {
        form(&server, "/login", &[("token", &token(&page)), ("key", &key)], headers).status
    };
    let own = ("cookie", own.as_str());
    let here = format!("http://{}", server.address);
    for (name, value) in [
        ("origin", "null"),
        ("origin", "http://evil.example"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        assert_eq!(post(&[own, (name, value)]), 403, "{name}: {value}");
    }
    // Another's cookie, none, and a planted one beside the own.
    assert_eq!(post(&[("cookie", &others)]), 403);
    assert_eq!(post(&[]), 403);
    assert_eq!(post(&[("cookie", &format!("{}; wr_form=planted", own.1))]), 403);
    assert_eq!(post(&[own, ("origin", &here), ("sec-fetch-site", "same-origin")]), 303);
    // A session's forms are not those of another session, nor of a visitor.
    let (one, two) = (log_in(&server, &key), log_in(&server, &key));
    let index = get(&server, "/", &[("cookie", &one)]);
    let out = |session: &str| {
        form(&server, "/logout", &[("token", &token(&index))], &[("cookie", session)]).status
    };
    assert_eq!((out(&two), out(own.1), out(&one)), (403, 403, 303));
}

/// A browser that leaves `Origin` out says all the same that another site's page asks; nor does the API take that.
#[test]
fn what_a_page_of_another_site_posts_is_refused_without_an_origin_too() {
    let server = Server::start(QUICK);
    let question = json!({"question": "Which?", "options": ["one", "two"]}).to_string();
    let (note, json) = ("Fever for two days.", "application/json");
    let cases = [("/v1/check", "text/plain", note), ("/v1/ask", json, &*question)];
    for (path, kind, body) in cases {
        let post = |site: &str| {
            let headers = [("content-type", kind), ("sec-fetch-site", site)];
            server.ask(&Ask { method: "POST", path, headers: &headers, body })
        };
        for site in ["cross-site", "same-site", "CROSS-SITE", ""] {
            let refused = (403, "origin_not_allowed".to_owned());
            assert_eq!(post(site).code(), refused, "{path}: {site:?}");
        }
        for site in ["same-origin", "none"] {
            assert_eq!(post(site).status, 200, "{path}: {site:?}");
        }
    }
}

#[test]
fn behind_a_proxy_with_tls_cookies_are_secure_and_the_browser_is_told_to_keep_to_it() {
    let folder = tempfile::tempdir().unwrap();
    add_key(folder.path(), "ward", "clinician");
    let server = Server::start_in(folder, &format!("{QUICK} --keys keys"));
    let page = get(&server, "/login", &[("x-forwarded-proto", "https")]);
    let set = page.header("set-cookie");
    assert!(set.starts_with("__Host-wr_form=") && set.ends_with("; Secure"), "{set}");
    assert!(page.header("strict-transport-security").starts_with("max-age="));
    let page = server.get("/login");
    assert!(page.header("set-cookie").starts_with("wr_form="));
    assert_eq!(page.header("strict-transport-security"), "");
}

#[test]
fn cached_tokens_tell_nothing_of_what_others_asked() {
    for (flags, is_told) in [("", false), ("--share-prefixes", true)] {
        let folder = tempfile::tempdir().unwrap();
        let (ward, lab) =
            (add_key(folder.path(), "ward", "api"), add_key(folder.path(), "lab", "api"));
        let link = folder.path().join("qwen3");
        std::os::unix::fs::symlink(crate::common::synthetic(Family::Qwen3), link).unwrap();
        let command = wardround(folder.path());
        let server =
            Server::run(command, folder, &format!("qwen3 --context 1024 --keys keys {flags}"));
        let ask = |key: &str| {
            let prompt = "The patient of bed 4 has syphilis and does not know it. ".repeat(8);
            let body = json!({"prompt": prompt, "max_tokens": 1, "seed": 1}).to_string();
            let bearer = format!("Bearer {key}");
            let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
            let path = "/v1/completions";
            let reply = server.ask(&Ask { method: "POST", path, headers: &headers, body: &body });
            reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
        };
        assert_eq!(ask(&ward), 0);
        assert!(ask(&ward) > 0, "the own prompt is found again");
        assert_eq!(ask(&lab) > 0, is_told, "{flags}");
    }
}

/// Where a proxy alone says who asks: users have their own cases and their role, in whatever letters they are named, and nobody else has any.
#[test]
fn users_without_keys_are_told_apart_and_nobody_is_one() {
    let flags = format!("{QUICK} --trust-user-header x-remote-user --audit audit");
    let server = Server::start(&flags);
    let place = open_case(&server, ("x-remote-user", "jos\u{e9}"));
    let status = |path: &str, user: &[(&str, &str)]| get(&server, path, user).status;
    assert_eq!(status(&place, &[("x-remote-user", "jos\u{e9}")]), 200);
    assert_eq!(status(&place, &[("x-remote-user", "zo\u{eb}")]), 404);
    for nobody in [&[][..], &[("x-remote-user", "")], &[("x-remote-user", " ")]] {
        assert_eq!(status(&place, nobody), 401, "{nobody:?}");
        assert_eq!(status("/v1/models", nobody), 401, "{nobody:?}");
        assert_eq!(status("/", nobody), 401, "{nobody:?}");
    }
    for path in ["/metrics", "/v1/models"] {
        assert_eq!(status(path, &[("x-remote-user", "ward")]), 403, "{path}");
    }
    let trail = std::fs::read_to_string(server.folder.path().join("audit/trail.jsonl")).unwrap();
    assert!(trail.contains("\"actor\":\"jos\u{e9}\""), "{trail}");
}
