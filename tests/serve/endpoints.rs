//! The endpoints that docs/serving.md lists, each for those whom it names.

use crate::client::{Ask, Server, add_key};

const PAGE: &str = include_str!("../../docs/serving.md");

#[test]
fn every_endpoint_that_is_listed_is_there_for_those_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let key = add_key(folder.path(), "ward");
    let server = Server::start_in(folder, "--keys keys");
    let bearer = format!("Bearer {key}");
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.filter_map(|row| row.split_once("` | "));
    let listed = rows.filter_map(|(called, rest)| Some((called.split_once(' ')?, rest)));
    let listed = listed.filter(|((method, _), _)| ["GET", "POST"].contains(method));
    let mut count = 0;
    for ((method, path), rest) in listed {
        let path = path.replace("{id}", "qwen3");
        let ask = |headers: &[(&str, &str)]| {
            let body = if method == "POST" { "{}" } else { "" };
            server.ask(&Ask { method, path: &path, headers, body })
        };
        let json = ("content-type", "application/json");
        let reply = ask(&[json, ("authorization", &bearer)]);
        let is_there =
            ![401, 403, 405].contains(&reply.status) && !reply.body.contains("unknown_url");
        assert!(is_there, "{path}: {reply:?}");
        let is_public = rest.starts_with("everyone |");
        assert_eq!(ask(&[json]).status == 401, !is_public, "{path} without a key");
        count += 1;
    }
    assert_eq!(count, 10);
    // Two keys are no caller.
    let two = [("authorization", bearer.as_str()), ("authorization", "Bearer wr_other")];
    let two = Ask { method: "GET", path: "/v1/models", headers: &two, body: "" };
    assert_eq!(server.ask(&two).code(), (400, "invalid_value".to_owned()));
    // What there is not says so to those with a key alone.
    assert_eq!(server.get("/nothing").status, 401);
    let headers = [("authorization", bearer.as_str())];
    let nothing = Ask { method: "GET", path: "/nothing", headers: &headers, body: "" };
    assert_eq!(server.ask(&nothing).status, 404);
    let wrong = Ask { method: "PUT", path: "/v1/models", headers: &headers, body: "" };
    assert_eq!(server.ask(&wrong).status, 405);
    assert_eq!(server.ask(&Ask { headers: &[], ..wrong }).status, 401);
}
