//! The page without a browser: its headers, its forms, its session; a browser's part is tests/acceptance/serve.mjs.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Answer, Ask, Server, add_key};
use crate::systems::QUICK;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// The token of a page's forms.
pub fn token(page: &Answer) -> String {
    let start = page.body.split("name=\"token\" value=\"").nth(1).unwrap();
    start.split('"').next().unwrap().to_owned()
}

pub fn form(
    server: &Server,
    path: &str,
    fields: &[(&str, &str)],
    headers: &[(&str, &str)],
) -> Answer {
    let code = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", code(value))).collect();
    let headers = [&[("content-type", "application/x-www-form-urlencoded")], headers].concat();
    server.ask(&Ask { method: "POST", path, headers: &headers, body: &pairs.join("&") })
}

/// The cookie that a page sets, as a browser sends it back.
pub fn cookie(page: &Answer) -> String {
    page.header("set-cookie").split(';').next().unwrap().to_owned()
}

#[test]
fn without_keys_a_note_goes_in_and_its_case_comes_out_escaped() {
    let server = Server::start(QUICK);
    let index = server.get("/");
    assert_eq!(index.header("content-security-policy"), POLICY);
    assert_eq!(
        (index.header("referrer-policy"), index.header("x-content-type-options")),
        ("same-origin", "nosniff")
    );
    assert_eq!(index.header("cache-control"), "no-store");
    for words in
        ["under evaluation, not for care", "Synthetic weights", "gemma3 <code>wr_", "medguards"]
    {
        assert!(index.body.contains(words), "{words}");
    }
    let note = "Fever. <script>alert(1)</script>\r\nMalaria is treated with aspirin.";
    let fields = [
        ("token", token(&index)),
        ("system", "medguards".into()),
        ("text", note.into()),
        ("seed", "4".into()),
    ];
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let cookie = cookie(&index);
    let own = [("cookie", cookie.as_str())];
    let opened = form(&server, "/cases", &fields, &own);
    assert_eq!(opened.status, 303, "{opened:?}");
    assert_eq!(form(&server, "/cases", &fields, &[]).status, 403, "the form is of its cookie");
    let place = opened.header("location").to_owned();
    let began = Instant::now();
    let page = loop {
        let page = server.get(&place);
        assert_eq!((page.status, page.header("content-security-policy")), (200, POLICY));
        assert!(!page.body.contains("<script>alert"));
        assert!(page.body.contains("&lt;script&gt;alert(1)"));
        if !page.body.contains("http-equiv=\"refresh\"") {
            break page;
        }
        assert!(page.body.contains("/page.js"));
        assert!(began.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(!page.body.contains("/page.js"), "a page that is over needs no script");
    for words in
        ["What the agents said", "Every call, as it came", "Random seed</dt><dd>4", "--audit"]
    {
        assert!(page.body.contains(words), "{words}");
    }
    // Whoever said nothing that could be read is overruled by nobody.
    let unread = "nothing that could be read";
    assert!(page.body.contains(unread), "{}", page.body);
    assert!(!page.body.contains(&format!("{unread} <span class=\"tag\">overruled")));
    let export = server.get(&format!("{place}/export"));
    assert!(export.header("content-disposition").starts_with("attachment"));
    assert_eq!(export.json()["item"]["text"], note.replace("\r\n", "\n"));
    assert!(server.get("/").body.contains(&place));
    let wrong =
        form(&server, "/cases", &[("token", "x"), ("system", "medguards"), ("text", "a")], &own);
    assert_eq!(wrong.status, 403);
    assert!(
        wrong.body.contains("load the page again")
            && wrong.header("content-type").starts_with("text/html")
    );
    for foreign in [("origin", "http://evil.example"), ("origin", "null")] {
        assert_eq!(form(&server, "/cases", &fields, &[own[0], foreign]).status, 403);
    }
    let empty: Vec<(&str, &str)> = fields
        .iter()
        .map(|(name, value)| match *name {
            "text" => ("text", "  "),
            _ => (*name, *value),
        })
        .collect();
    assert!(form(&server, "/cases", &empty, &own).body.contains("the note is empty"));
}

#[test]
fn who_logs_in_again_and_again_logs_nobody_else_out() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str| add_key(folder.path(), name, "clinician");
    let (ward, lab) = (key("ward"), key("lab"));
    let server = Server::start_in(folder, &format!("{QUICK} --keys keys"));
    let page = server.get("/login");
    let visitor = cookie(&page);
    let status = |session: &str| {
        let headers = [("cookie", session)];
        server.ask(&Ask { method: "GET", path: "/", headers: &headers, body: "" }).status
    };
    let session = |key: &str| {
        let fields = [("token", &*token(&page)), ("key", key)];
        let opened = form(&server, "/login", &fields, &[("cookie", &visitor)]);
        assert_eq!(opened.status, 303);
        cookie(&opened)
    };
    let of_lab = session(&lab);
    let sessions: Vec<String> = (0..17).map(|_| session(&ward)).collect();
    assert_eq!(status(&of_lab), 200);
    assert_eq!((status(&sessions[0]), status(&sessions[16])), (303, 200));
}

#[test]
fn with_keys_a_session_is_a_cookie_for_cases_alone() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str, role: &str| add_key(folder.path(), name, role);
    let (ward, metrics) = (key("ward", "clinician"), key("m", "metrics"));
    let chat = "https://chat.ward.example";
    let flags = format!("{QUICK} --keys keys --audit audit --cors-origin {chat}");
    let server = Server::start_in(folder, &flags);
    for path in ["/", "/cases/abc", "/cases"] {
        let sent = server.get(path);
        assert_eq!((sent.status, sent.header("location")), (303, "/login"), "{path}");
    }
    let page = server.get("/login");
    let visitor = cookie(&page);
    let visitor = [("cookie", visitor.as_str())];
    let log_in =
        |key: &str| form(&server, "/login", &[("token", &token(&page)), ("key", key)], &visitor);
    assert_eq!(log_in("wr_wrong").status, 401);
    assert_eq!(log_in(&metrics).status, 401);
    assert_eq!(form(&server, "/login", &[("token", "x"), ("key", &ward)], &visitor).status, 403);
    let opened = log_in(&ward);
    assert_eq!((opened.status, opened.header("location")), (303, "/"));
    let cookie = opened.header("set-cookie").to_owned();
    assert!(
        cookie.contains("HttpOnly; SameSite=Strict; Path=/") && !cookie.contains("Secure"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let own = [("cookie", cookie.as_str())];
    let get = |path: &str| server.ask(&Ask { method: "GET", path, headers: &own, body: "" });
    let index = get("/");
    assert_eq!(index.status, 200);
    assert!(index.body.contains("ward</span>"));
    // The cookie opens cases, and nothing else.
    assert_eq!(get("/v1/models").status, 401);
    assert_eq!(get("/v1/cases/none").status, 404);
    let fields = [
        ("token", token(&index)),
        ("system", "cot-sc".to_owned()),
        ("text", "Which?\nA) one\nB) two".to_owned()),
    ];
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let opened = form(&server, "/cases", &fields, &own);
    let place = opened.header("location").to_owned();
    let stream = get(&format!("/v1{place}/events"));
    assert!(stream.body.contains("event: done"), "{}", stream.body);
    let case = get(&place);
    assert!(case.body.contains("Was this right?"));
    // What the API gives of a case has its line, and a page of another origin has no session.
    let whole = get(&format!("/v1{place}"));
    assert_eq!((whole.status, &whole.json()["status"]), (200, &json!("done")));
    let sibling = [own[0], ("origin", chat)];
    let path = format!("/v1{place}");
    let from_sibling = server.ask(&Ask { method: "GET", path: &path, headers: &sibling, body: "" });
    assert_eq!(from_sibling.status, 401, "{from_sibling:?}");
    let judge = |helpful: &str, comment: &str| {
        let fields = [("token", &*token(&case)), ("helpful", helpful), ("comment", comment)];
        form(&server, &format!("{place}/feedback"), &fields, &own)
    };
    for helpful in ["maybe", "YES", ""] {
        assert_eq!(judge(helpful, "").status, 400, "{helpful}");
    }
    assert_eq!(judge("maybe", "canary").status, 400);
    let said = judge("no", "canary");
    assert_eq!((said.status, said.header("location")), (303, format!("{place}#feedback").as_str()));
    // A case is judged once.
    let again = judge("yes", "");
    assert!(again.status == 400 && again.body.contains("has your judgement already"), "{again:?}");
    assert!(get(&place).body.contains("it is in the audit log"));
    let out = form(&server, "/logout", &[("token", &token(&index))], &own);
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(get("/").status, 303);
    let log = std::fs::read_to_string(server.folder.path().join("audit/trail.jsonl")).unwrap();
    for event in ["login_failed", "login", "case", "feedback"] {
        assert!(log.contains(&format!("\"event\":\"{event}\"")), "{event}");
    }
    for event in ["feedback", "export"] {
        assert_eq!(log.matches(&format!("\"event\":\"{event}\"")).count(), 1, "{log}");
    }
    assert!(
        log.contains("\"is_helpful\":false") && !log.contains("canary") && !log.contains(&ward)
    );
    // Whoever tries keys does not fill the disk.
    let logged = || {
        let path = server.folder.path().join("audit/trail.jsonl");
        std::fs::read_to_string(path).unwrap().matches("\"event\":\"login_failed\"").count()
    };
    let before = logged();
    let statuses: Vec<u16> = (0..40).map(|_| log_in("wr_wrong").status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    let refused = statuses.iter().filter(|status| **status == 401).count();
    assert_eq!(logged() - before, refused, "{statuses:?}");
}
